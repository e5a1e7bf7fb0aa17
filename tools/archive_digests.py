"""Digests of all archives that the suites export, to see what a redesign changes; no engine runs.

    python -m tools.archive_digests write before.json          # in the old checkout
    python -m tools.archive_digests write after.json           # in the new one
    python -m tools.archive_digests compare before.json after.json

A cell has a digest for each archive that it exports, or the error that it was refused with. `compare` prints every cell
that differs, and ends with 1 if there is one. `write` takes what pytest takes behind `--`, such as `-n 4` or `-k lstm`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from t2n_core.errors import T2NError
from t2n_core.export.model import ModelExport

SUITES = ("recurrent", "layers", "encoders", "dynamic", "dtypes", "aten", "models")
ENGINES = ("--t2n-tract=0.19.15,0.20.22,0.21.8,0.21.19,0.22.4,0.23.9", "--t2n-khronos", "--t2n-offline")
EVERY_NTH_MODEL = 4
"""Of the 177 architectures, so that 45 are left."""
_OUTPUT = "archive_digests"
Digests = dict[str, list[str]]


class NotCheckedError(T2NError):
    """Raised in place of returning an archive, so that nothing is checked."""


class Recorder:
    """Keeps a digest of each archive that the running test exports; on a worker it hands them to the controller."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self.config, self.path, self.found = config, path, Digests()
        self.cell = ""
        self.patch = pytest.MonkeyPatch()

    def pytest_sessionstart(self) -> None:
        write = ModelExport.to

        def to(export: ModelExport, target: Any, path: Any, **options: Any) -> Any:
            archives = self.found.setdefault(self.cell, [])
            try:
                result = write(export, target, path, **options)
            except Exception as refused:
                archives.append(f"{type(refused).__name__}: {_without_place(str(refused).splitlines()[0])}")
                raise
            archives.append(hashlib.sha256(result.archive.read_bytes()).hexdigest())
            raise NotCheckedError("the digest is all that is wanted")

        self.patch.setattr(ModelExport, "to", to)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        models = [item for item in items if item.path.name == "test_models.py"]
        names = sorted({item.name.split("[")[1].split("-tract-")[0] for item in models if "traced" not in item.name})
        chosen = {f"test_model[{name}-tract-" for name in names[::EVERY_NTH_MODEL]}
        kept = {item for item in models if any(item.name.startswith(name) for name in chosen)}
        items[:] = [item for item in items if item in kept or item.path.name != "test_models.py"]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.cell = item.nodeid

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.found.update(getattr(node, "workeroutput", {}).get(_OUTPUT, {}))

    def pytest_sessionfinish(self) -> None:
        self.patch.undo()
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput[_OUTPUT] = self.found

    def pytest_unconfigure(self) -> None:
        if not hasattr(self.config, "workerinput"):
            self.path.write_text(json.dumps(dict(sorted(self.found.items())), indent=0), encoding="utf-8")


def _without_place(message: str) -> str:
    """Return an error's message without the model's line, which may move."""
    return re.sub(r" at \S+\.py:\d+.*", "", message)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--archive-digests", metavar="FILE", type=Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(config, config.getoption("archive_digests")))


def differences(before: Digests, after: Digests) -> list[str]:
    """Return one line for each cell that stands in one file only, or has other archives in both."""
    return [
        f"{cell}: {before.get(cell, 'no such cell')} -> {after.get(cell, 'no such cell')}"
        for cell in sorted(before.keys() | after.keys())
        if before.get(cell) != after.get(cell)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write")
    write.add_argument("file", type=Path)
    write.add_argument("pytest", nargs="*", help="options of pytest, behind --")
    compare = commands.add_parser("compare")
    compare.add_argument("files", nargs=2, type=Path)
    options = parser.parse_args(arguments)
    if options.command == "write":
        suites = [f"conformance/suites/test_{name}.py" for name in SUITES]
        plugin = ["-p", __spec__.name if __spec__ else "tools.archive_digests", f"--archive-digests={options.file}"]
        pytest.main([*suites, *ENGINES, *plugin, "-q", "--tb=no", "--no-header", "-rN", *options.pytest])
        return 0
    before, after = (json.loads(file.read_text(encoding="utf-8")) for file in options.files)
    lines = differences(before, after)
    print(*lines, f"{len(lines)} of {len(before.keys() | after.keys())} cells differ", sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
