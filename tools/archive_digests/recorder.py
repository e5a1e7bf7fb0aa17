"""The plugin of pytest that records what each cell writes, and ends its test there."""

from __future__ import annotations

import faulthandler
import functools
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from t2n_core.errors import T2NError
from tools.archive_digests.folder import UNFINISHED, Folder

_KNOWN = "archive_digests_known"


class NotCheckedError(T2NError):
    """Raised instead of returning from an export, so that nothing is checked."""


class TooLong(BaseException):
    """Raised in a cell that takes too long; handlers of Exception let it through."""


class Recorder:
    """Adds the entries of each cell to the folder, in the process that runs it."""

    def __init__(self, folder: Folder, cells: str, seconds: int, recorded: set[str]) -> None:
        self.folder, self.wanted, self.seconds, self.known = folder, re.compile(cells), seconds, recorded
        self.entries: list[str] = []
        self.goes_on = False
        self.patch = pytest.MonkeyPatch()

    def pytest_sessionstart(self) -> None:
        import torch

        from t2n_core.nnef import archive

        torch.set_num_threads(1)
        write = archive.write_archive

        @functools.wraps(write)
        def write_archive(graph: Any, path: Any, **options: Any) -> Path:
            written = write(graph, path, **options)
            self.entries.append(self.folder.keep(written))
            if self.goes_on:
                return written
            raise NotCheckedError("the archive is all that is wanted")

        for module in list(sys.modules.values()):
            for name in [name for name, value in vars(module).items() if value is write]:
                self.patch.setattr(module, name, write_archive)

    def pytest_sessionfinish(self) -> None:
        self.patch.undo()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the wanted cells without entries, and let generating cells write all of their archives."""
        items[:] = [
            item
            for item in items
            if item.get_closest_marker("nnef_export") or item.get_closest_marker("nnef_generate")
            if self.wanted.search(item.nodeid) and item.nodeid not in self.known
        ]
        for item in items:
            if item.get_closest_marker("nnef_generate"):
                item.add_marker(pytest.mark.nnef_generate(check=False), append=False)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.entries = []
        self.goes_on = item.get_closest_marker("nnef_generate") is not None
        before = signal.signal(signal.SIGALRM, self._stop)
        signal.alarm(self.seconds)
        faulthandler.dump_traceback_later(2 * self.seconds, exit=True)  # for code that no signal interrupts
        try:
            done = yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        self.folder.add(item.nodeid, self.entries or ["nothing is exported"])
        return done

    def _stop(self, *_: object) -> None:
        raise TooLong(f"not exported within {self.seconds} s")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Iterator[None]:
        """Note what the fixture refuses, also where the test goes on."""
        export: Any = pyfuncitem.funcargs.get("nnef_export")
        if export is not None:
            pyfuncitem.funcargs["nnef_export"] = self._noting(export)
        return (yield)

    def _noting(self, export: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(export)
        def nnef_export(*args: Any, **options: Any) -> Any:
            try:
                return export(*args, **options)
            except NotCheckedError:
                raise
            except Exception as refused:
                self._refuse(refused)
                raise

        return nnef_export

    def _refuse(self, error: BaseException) -> None:
        kind = {"Skipped": "skipped", "TooLong": "timeout"}.get(type(error).__name__, "refused")
        entry = f"{kind} {type(error).__name__}: {without_place(str(error))}"
        if entry not in self.entries:
            self.entries.append(entry)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        error = call.excinfo.value if call.excinfo is not None else None
        if error is not None and (not self.entries or isinstance(error, TooLong)):
            self._refuse(error)


class Overseer:
    """Gives each worker the cells that are known, notes cells that ended their worker, and counts."""

    def __init__(self, folder: Folder, *, retry: bool) -> None:
        cells = folder.cells()
        self.folder, self.planned = folder, set[str]()
        self.known = [name for name, entries in cells.items() if not (retry and _is_unfinished(entries))]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[_KNOWN] = self.known

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.planned.update(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when not in ("setup", "call", "teardown"):  # a report that xdist makes for a worker that ended
            self.folder.add(report.nodeid, ["crash the process ended"])


def _is_unfinished(entries: list[str]) -> bool:
    return any(entry.startswith(UNFINISHED) for entry in entries)


def without_place(message: str) -> str:
    """Return an error's message without paths, lines and addresses, which differ between checkouts."""
    for pattern, word in (
        (r"\S+\.py:\d+", "FILE"),
        (r"(?<!\w)/(\w[^\s'`\"]*/)[^\s'`\"]*", "PATH"),
        (r"\b0x[0-9a-f]+", "0x"),
    ):
        message = re.sub(pattern, word, message)
    return message


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--archive-digests", metavar="FOLDER", type=Path, required=True)
    parser.addoption("--archive-cells", metavar="REGEX", default="")
    parser.addoption("--archive-seconds", metavar="N", type=int, default=300)
    parser.addoption("--archive-retry", action="store_true")


def pytest_configure(config: pytest.Config) -> None:
    folder = Folder(config.getoption("archive_digests"))
    if hasattr(config, "workerinput"):
        known_cells = set(config.workerinput[_KNOWN])
        cells, seconds = config.getoption("archive_cells"), config.getoption("archive_seconds")
        config.pluginmanager.register(Recorder(folder, cells, seconds, known_cells))
    else:
        overseer = Overseer(folder, retry=config.getoption("archive_retry"))
        config.pluginmanager.register(overseer, "archive_digests_overseer")
