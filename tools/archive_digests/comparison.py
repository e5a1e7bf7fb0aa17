"""What differs between two folders of entries."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import islice, zip_longest

from tools.archive_digests.folder import ARCHIVE, Cells, Folder

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
    found = list(differences(old, new))
    return len({cell for cell, _, _ in found}), _lines(before, after, found, graphs)


def _lines(before: Folder, after: Folder, found: list[tuple[str, str, str]], graphs: int) -> Iterator[str]:
    pairs: dict[tuple[str, str], str] = {}
    for cell, one, other in found:
        yield f"{cell}: {_short(one)} -> {_short(other)}"
        if one.startswith(ARCHIVE) and other.startswith(ARCHIVE):
            pairs.setdefault((one, other), cell)
    for (one, other), cell in islice(pairs.items(), graphs):
        yield from _diff(before.text(one), after.text(other), cell)


def _diff(old: str, new: str, cell: str) -> Iterator[str]:
    lines = [*difflib.unified_diff(old.splitlines(), new.splitlines(), f"{cell} before", "after", n=2, lineterm="")]
    yield ""
    yield from lines[:_LINES]
    if len(lines) > _LINES:
        yield f"... {len(lines) - _LINES} more lines"


def _short(entry: str) -> str:
    return entry[: len(ARCHIVE) + 12] if entry.startswith(ARCHIVE) else entry.splitlines()[0]
