"""The commands `write` and `compare`."""

from __future__ import annotations

import argparse
import difflib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path

import torch

from pytest_t2n.control.sources import source_digest
from t2n_core.engine.provision.known import newest_of_lines
from tools.archive_digests import __doc__ as about
from tools.archive_digests.folder import ARCHIVE, Cells, Folder

ROOT = Path(__file__).parents[2]
SUITES = {
    **{path.stem.removeprefix("test_"): path for path in sorted((ROOT / "conformance" / "suites").glob("test_*.py"))},
    "options": Path(__file__).with_name("test_options.py"),
}
VERSIONS = ",".join(newest_of_lines())
"""The newest release of each line of tract; an engine has to be in the cache, though none runs."""


def write(options: argparse.Namespace) -> int:
    """Record the suites in a separate process; return 0 if each cell has entries."""
    folder = Folder(options.folder.absolute())
    code = f"{source_digest(ROOT / 't2n_core')} of t2n_core, {source_digest(ROOT / 'conformance')} of conformance"
    try:
        folder.begin(f"{code}, torch {torch.__version__}\n")
    except ValueError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    suites = [
        str(path.relative_to(ROOT)) for name, path in SUITES.items() if not options.suite or name in options.suite
    ]
    plugin = ["-p", "tools.archive_digests.recorder", f"--archive-digests={folder.path}", *_filters(options)]
    quiet = ["-q", "-q", "--tb=no", "--no-header", "-rN", "-p", "no:cacheprovider", "-W", "ignore"]
    engines = [f"--t2n-tract={options.tract}", "--t2n-khronos", "--t2n-offline"]
    command = [sys.executable, "-m", "pytest", *suites, *plugin, *engines, *quiet, "-n", str(options.jobs)]
    before = folder.cells().keys()
    ending = subprocess.run(command, cwd=ROOT, check=False).returncode
    cells = folder.cells()
    print(f"{len(cells.keys() - before)} cells recorded, {summary(cells)}")
    return 0 if ending in (0, 1, 5) else 1  # failures of tests, or nothing left to record


def _filters(options: argparse.Namespace) -> list[str]:
    chosen = [f"--archive-cells={options.case}", f"--archive-seconds={options.seconds}"]
    return [*chosen, "--archive-retry"] if options.retry else chosen


def summary(cells: Cells) -> str:
    """Return how many entries of each kind there are."""
    kinds = [entry.split(" ")[0] for entries in cells.values() for entry in entries]
    return f"{len(cells)} in all: " + ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))


def compare(options: argparse.Namespace) -> int:
    """Print what differs; return 1 if something does."""
    before, after = (Folder(path) for path in options.folders)
    count, lines = report(before, after, options.graphs)
    print(*lines, sep="\n")
    print(f"{count} of {len(before.cells().keys() | after.cells().keys())} cells differ")
    return 1 if count else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="archive_digests", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    writing = commands.add_parser("write", help="record cells that the folder lacks")
    writing.set_defaults(run=write)
    writing.add_argument("folder", type=Path)
    writing.add_argument("--suite", action="append", choices=SUITES, help="one suite; may be given several times")
    writing.add_argument("--case", default="", metavar="REGEX", help="cells with this in their name, as lstm|gru")
    writing.add_argument("--tract", default=VERSIONS, metavar="VERSIONS", help=f"releases, {VERSIONS} if not given")
    writing.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    writing.add_argument("--seconds", type=int, default=300, metavar="N", help="limit for each cell")
    writing.add_argument("--retry", action="store_true", help="also record again what ended by the limit or a crash")
    comparing = commands.add_parser("compare", help="print what differs")
    comparing.set_defaults(run=compare)
    comparing.add_argument("folders", nargs=2, type=Path)
    comparing.add_argument("--graphs", type=int, default=3, metavar="N", help="diffs of graphs to print")
    options = parser.parse_args(arguments)
    return int(options.run(options))


_NONE = "no such entry"
_LINES = 60
"""Lines of a diff that are printed."""


def differences(before: Cells, after: Cells) -> Iterator[tuple[str, str, str]]:
    """Yield cell, entry before and entry after for everything that is not the same in both."""
    for cell in sorted(before.keys() | after.keys()):
        for old, new in zip_longest(before.get(cell, ()), after.get(cell, ()), fillvalue=_NONE):
            if old != new:
                yield cell, old, new


def report(before: Folder, after: Folder, graphs: int) -> tuple[int, Iterator[str]]:
    """Return the number of cells that differ, and the lines to print, with diffs of the first `graphs` pairs."""
    old, new = before.cells(), after.cells()
    changes = list(differences(old, new))
    return len({cell for cell, _, _ in changes}), _lines(before, after, changes, graphs)


def _lines(before: Folder, after: Folder, changes: list[tuple[str, str, str]], graphs: int) -> Iterator[str]:
    pairs: dict[tuple[str, str], str] = {}
    for cell, entry, other in changes:
        yield f"{cell}: {_short(entry)} -> {_short(other)}"
        if entry.startswith(ARCHIVE) and other.startswith(ARCHIVE):
            pairs.setdefault((entry, other), cell)
    for (entry, other), cell in islice(pairs.items(), graphs):
        yield from _diff(before.text(entry), after.text(other), cell)


def _diff(old: str, new: str, cell: str) -> Iterator[str]:
    lines = [*difflib.unified_diff(old.splitlines(), new.splitlines(), f"{cell} before", "after", n=2, lineterm="")]
    yield ""
    yield from lines[:_LINES]
    if len(lines) > _LINES:
        yield f"... {len(lines) - _LINES} more lines"


def _short(entry: str) -> str:
    return entry[: len(ARCHIVE) + 12] if entry.startswith(ARCHIVE) else entry.splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
