"""Results as JSON lines: each is kept as soon as it is there, and a file that was begun is continued."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

Row = Mapping[str, Any]
T = TypeVar("T", bound=Row)


def read_rows(*paths: Path) -> list[dict[str, Any]]:
    """Return the rows of all files that exist, in order."""
    texts = (path.read_text("utf-8") for path in paths if path.exists())
    return [json.loads(line) for text in texts for line in text.splitlines() if line.strip()]


class RowFile:
    """A file that rows are added to; without a path they are not kept."""

    def __init__(self, path: Path | None, *, anew: bool = False) -> None:
        """Continue at the end of the file, or start it `anew`."""
        self._path = path
        if path is not None and anew:
            path.write_text("", "utf-8")

    def add(self, row: Row) -> None:
        """Write a row, so that what fails later does not take it along."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as out:
                out.write(f"{json.dumps(row)}\n")


def write_results(path: Path, results: Any) -> None:
    """Write results that are no rows, as a document of JSON."""
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def group_rows(rows: Iterable[T], *names: str) -> dict[tuple[Any, ...], list[T]]:
    """Return rows by the values of these fields, in the order of their first rows."""
    groups: dict[tuple[Any, ...], list[T]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups
