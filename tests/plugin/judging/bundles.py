"""Bundles written by hand: small graphs, and the command that judges them on real engines."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_t2n.cli.judging.unit import Unit, judge, pack_unit
from t2n_core.engine.provision.store import default_cache_dir
from tests.releases import RECENT

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc")
CACHE = str(default_cache_dir())
"""Looked up now: pytester gives each test a home without engines."""
HANGS = "relu(" * 60 + "x * 2.0" + ")" * 60
"""tract reads nested calls in time exponential in their depth."""
GRAPH = """version 1.0;

extension tract_registry tract_core;

graph net(x) -> (y)
{
    x = external(shape=[2, 3]);
    y = %s;
}
"""
X = np.random.default_rng(3).standard_normal((2, 2, 3)).astype("f4")
RIGHT = "x * 2.0"


def tar_of(files: Mapping[str, bytes]) -> bytes:
    """Return a tar with these files."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


def archive(graph: str = RIGHT) -> bytes:
    """Return the archive of a graph."""
    return tar_of({"graph.nnef": (GRAPH % graph).encode()})


def arrays(**others: np.ndarray) -> bytes:
    """Return two samples of a graph that doubles."""
    stream = io.BytesIO()
    samples = {f"{n}.{kind}.0": x for n in range(2) for kind, x in (("input", X[n]), ("expected", X[n] * 2))}
    np.savez_compressed(stream, **{**samples, **others})
    return stream.getvalue()


class BundleFolder:
    """A bundle, to which checks are added one by one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checks: list[dict[str, Any]] = []
        for name in ("archives", "samples"):
            (folder / name).mkdir(parents=True)

    def add(self, name: str, graph: str = RIGHT, version: str = RECENT, **others: Any) -> dict[str, Any]:
        """Add a check of a graph; `others` are further fields of it."""
        check = {
            "nodeid": f"test_g.py::test_g[{name}-tract-{version}]",
            "case": f"test_g.py::test_g[{name}]",
            "engine_id": f"tract-{version}",
            "target": "tract",
            "version": version,
            "label": version,
            "archive": self.file("archives", ".tar", archive(graph)),
            "samples": self.file("samples", ".npz", arrays()),
            "sizes": [{}, {}],
            "output_names": ["y"],
            "tolerance": "approximate",
            **others,
        }
        self.checks.append(check)
        return check

    def file(self, folder: str, suffix: str, data: bytes) -> str:
        """Write a file under the name made of its digest, and return that."""
        name = f"{folder}/{hashlib.sha256(data).hexdigest()}{suffix}"
        (self.folder / name).write_bytes(data)
        return name

    def close(self) -> None:
        """Write the manifest."""
        content = {"schema": 1, "platform": {"key": ""}, "checks": self.checks}
        (self.folder / "manifest.json").write_text(json.dumps(content))


def words(bundle: Path, *given: str, engines: str = RECENT, timeout: float = 10) -> list[str]:
    """Return the arguments of `t2n` that judge a bundle."""
    select = ["--tract", engines, "--offline", "--cache-dir", CACHE, "--timeout", str(timeout)]
    return ["matrix", "run", "--bundle", str(bundle), *select, *given]


def start(*given: str, **more: Any) -> subprocess.Popen[str]:
    """Start `t2n` as a process that heeds Ctrl-C, also under nohup."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}
    command = [sys.executable, "-m", "pytest_t2n.cli", *given]
    return subprocess.Popen(command, preexec_fn=_heed_ctrl_c, **{**pipes, **more})


def _heed_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def records(report: Path) -> list[dict[str, Any]]:
    """Return the lines of a report."""
    return [json.loads(line) for line in (report / "matrix.jsonl").read_text().splitlines()]


def cells(report: Path) -> dict[str, dict[str, Any]]:
    """Return the cells of a report by their parameter."""
    cell_records = [line for line in records(report) if line["type"] == "cell"]
    cells_by_name = {cell["case"].partition("[")[2][:-1] + f"@{cell['version']}": cell for cell in cell_records}
    assert len(cells_by_name) == len(cell_records), "two records of one cell"
    return cells_by_name


def evidence(report: Path) -> list[dict[str, Any]]:
    """Return graphs and cells in the order of the file, without times."""
    lines = [line for line in records(report) if line["type"] in ("graph", "cell")]
    return [{name: value for name, value in line.items() if name != "times"} for line in lines]


def processes_with(word: str) -> dict[int, str]:
    """Return the command lines of all processes whose environment has a word."""
    command_lines = {}
    for entry in Path("/proc").iterdir():
        try:
            is_other = entry.name.isdigit() and int(entry.name) != os.getpid()
            if is_other and word.encode() in (entry / "environ").read_bytes():
                command_lines[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return command_lines


class Threads:
    """Workers of this process, whose engines a test has replaced."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._pool = ThreadPoolExecutor(width)

    def executor(self) -> ThreadPoolExecutor:
        return self._pool

    def submit(self, executor: Executor, unit: Unit) -> Future[bytes]:
        return executor.submit(judge, pack_unit(unit))


@contextmanager
def in_this_process(width: int) -> Iterator[Threads]:
    """Yield workers in place of `local_workers`."""
    yield Threads(width)


class OneMore:
    """An engine whose outputs are those of the model `mismatch`: twice the input, and one more."""

    name, version, kept_states = "tract", RECENT, None

    def run(self, archive: Path, batches: Any, *, timeout: float = 60.0) -> Any:
        from t2n_core.engine.protocol import EngineReply

        return EngineReply("ok", "run", outputs=tuple((batch[0] * 2 + 1,) for batch in batches))


def judge_here(monkeypatch: pytest.MonkeyPatch, engine: Any) -> None:
    """Let `t2n matrix run` judge in this process, with one engine in place of all."""
    # not by attributes of the packages: sessions in this process leave those of modules that are gone again
    engines, command = (importlib.import_module(name) for name in ("t2n_core.engine", "pytest_t2n.cli.run"))
    monkeypatch.setattr(engines, "engine_for", lambda resolved: engine, raising=False)
    monkeypatch.setattr(command, "local_workers", in_this_process)


def wait_for_cells(report, count):
    """Return when `matrix.jsonl` has so many cells. Raises TimeoutError after 40 seconds."""
    path = report / "matrix.jsonl"
    for _ in range(4000):
        if path.exists() and path.read_text().count('"type":"cell"') >= count:
            return
        time.sleep(0.01)
    raise TimeoutError(path)
