"""Badges for shields.io: one per engine version, with the worst of its kernel tiers, and one per other tier."""

from __future__ import annotations

import json
import re
from collections import Counter

from pytest_t2n.records.completeness import Completeness
from pytest_t2n.records.counts import authors_text
from pytest_t2n.records.schema import CellLine
from pytest_t2n.report.matrix import Matrix, Row, is_surprise
from pytest_t2n.report.tiers import releases_of, worst_of

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class BadgeFold:
    """Counts the cells of each column, and the worst of the tiers of each release."""

    def __init__(self, matrix: Matrix) -> None:
        self._releases = releases_of(matrix.columns)
        self._release_of = {index: release for release in self._releases for index in release.columns}
        self._titles = [engine.title for engine in matrix.columns]
        self._state = matrix.completeness
        self._counts = {
            title: Counter[str]() for title in (*self._titles, *(release.name for release in self._releases))
        }
        self._surprises: Counter[str] = Counter()
        self._authors = {title: Counter[str]() for title in self._counts}

    def add(self, row: Row) -> None:
        """Add a row."""
        present = [self._release_of[index] for index, cell in enumerate(row.cells) if cell is not None]
        for release in dict.fromkeys(present):
            cells = [row.cells[index] for index in release.columns]
            titles = [self._titles[index] for index in release.columns]
            self._count(release.name, worst_of(cells))
            for title, cell in zip(titles, cells, strict=True):
                if title != release.name:
                    self._count(title, cell)

    def badges(self) -> dict[str, str]:
        """Return the JSON text of each badge by its file name, such as `badge-tract-0.21.19.json`."""
        texts = {}
        for title, counts in self._counts.items():
            if counts:
                name = _UNSAFE.sub("_", f"badge-{title.replace(' ', '-', 1)}.json")
                badge = _badge(title, counts, self._surprises[title], self._authors[title], self._state)
                texts[name] = json.dumps(badge, indent=2, sort_keys=True) + "\n"
        return texts

    def _count(self, title: str, cell: CellLine | None) -> None:
        if cell is not None:
            self._counts[title][cell.status] += 1
            self._surprises[title] += is_surprise(cell)
            if cell.author:
                self._authors[title][cell.author] += 1


def badges(matrix: Matrix) -> dict[str, str]:
    """Return the JSON text of each badge by its file name, such as `badge-tract-0.21.19.json`."""
    fold = BadgeFold(matrix)
    matrix.fold(fold)
    return fold.badges()


def _badge(
    title: str, counts: Counter[str], surprises: int, authors: Counter[str], state: Completeness
) -> dict[str, object]:
    judged = counts.total() - counts["skip"]
    message = ", ".join(filter(None, [f"{counts['pass']}/{judged} pass", authors_text(authors)]))
    if not state.is_complete:
        message, colour = state.notice, "lightgrey"
    elif counts["not_run"]:
        message, colour = f"incomplete, {message}", "lightgrey"
    elif not judged:
        message, colour = "no cases", "lightgrey"
    elif not surprises:
        colour = "brightgreen"
    else:
        colour = "yellow" if counts["pass"] * 2 > judged else "red"
    return {"schemaVersion": 1, "label": title, "message": message, "color": colour}
