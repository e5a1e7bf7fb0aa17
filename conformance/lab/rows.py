"""Results as JSON lines: each is kept as soon as it is there, and a file that was begun is continued.

A file whose name ends in `.gz` is compressed.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast

Row = Mapping[str, Any]
T = TypeVar("T", bound=Row)


def read_rows(*paths: Path) -> list[dict[str, Any]]:
    """Return the rows of all files that exist, in order."""
    lines: list[str] = []
    for path in filter(Path.exists, paths):
        with _open(path, "r") as file:
            lines += file
    return [json.loads(line) for line in lines if line.strip()]


class RowFile:
    """A file that rows are added to; without a path they are not kept."""

    def __init__(self, path: Path | None, *, anew: bool = False) -> None:
        """Continue at the end of the file, or start it `anew`."""
        self._path = path
        if path is not None and anew:
            path.write_bytes(b"")

    def add(self, row: Row) -> None:
        """Write a row, so that what fails later does not take it along."""
        if self._path is not None:
            with _open(self._path, "a") as out:
                out.write(f"{json.dumps(row)}\n")


def _open(path: Path, mode: str) -> TextIO:
    """Open a file of rows to read it (`r`) or to add to it (`a`)."""
    if path.suffix == ".gz":
        return cast(TextIO, gzip.open(path, f"{mode}t", encoding="utf-8"))
    return cast(TextIO, path.open(mode, encoding="utf-8"))


def write_results(path: Path, results: Any) -> None:
    """Write results that are no rows, as a document of JSON."""
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def group_rows(rows: Iterable[T], *names: str) -> dict[tuple[Any, ...], list[T]]:
    """Return rows by the values of these fields, in the order of their first rows."""
    groups: dict[tuple[Any, ...], list[T]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups
