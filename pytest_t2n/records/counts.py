"""Counts of cells for the summary, kept while cells end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from pytest_t2n.records.schema import CellLine
from t2n_core.parity.stage import PASSING, Author

NAMED = 20
"""Number of cells of a kind that are named; the rest is counted."""


class CountKey(NamedTuple):
    """Key by which the summary groups cells."""

    file: str
    engine: str
    """Title of the column."""
    status: str
    level: str
    """Empty where none holds."""
    expected: bool
    reused: bool

    @property
    def good(self) -> bool:
        """Return whether the cells passed, or failed as expected."""
        return self.status == "pass" or self.expected


class TokenCount(NamedTuple):
    """Number of generated tokens that are right, and of all."""

    right: int = 0
    total: int = 0

    def plus(self, tokens: str) -> TokenCount:
        """Return the count with the tokens of a record, `64/64`, added."""
        right, _, total = tokens.partition("/")
        return TokenCount(self.right + int(right), self.total + int(total))

    def __str__(self) -> str:
        return f"{self.right}/{self.total}" if self.total else ""


def authors_text(authors: Mapping[str, int]) -> str:
    """Return `0 exporter errors, 3 engine errors` for the number of mismatches by author; empty if there are none."""
    if not any(authors.values()):
        return ""
    sides = (Author.EXPORTER, Author.ENGINE)
    counts = [(side, authors.get(side, 0)) for side in sides]
    words = [f"{count} {side} error{'s' if count != 1 else ''}" for side, count in counts]
    both = authors.get(Author.BOTH, 0)
    return ", ".join([*words, f"{both} of both"] if both else words)


class CellCounts:
    """Number of cells by `CountKey`."""

    def __init__(self) -> None:
        self.counts: Counter[CountKey] = Counter()
        self.weak: list[tuple[str, str]] = []
        """Node id and reason of the first weak cells that were not expected to be weak."""
        self.not_finite: list[tuple[str, str]] = []
        """Node id and note of the first cells that pass with NaN or infinities among their outputs."""
        self.not_finite_in_all = 0
        self.tokens: dict[str, TokenCount] = {}
        """Tokens by the title of the column, of models that generate."""
        self.authors: Counter[str] = Counter()
        """Number of mismatches by their author; those without one are not counted."""

    def add(self, cell: CellLine) -> None:
        """Count one cell."""
        file = cell.nodeid.partition("::")[0]
        key = CountKey(file, cell.engine, cell.status, cell.level or "", bool(cell.expected), cell.reused)
        self.counts[key] += 1
        if cell.author:
            self.authors[cell.author] += 1
        if cell.tokens:
            self.tokens[cell.engine] = self.tokens.get(cell.engine, TokenCount()).plus(cell.tokens)
        if cell.status == "weak" and not cell.expected and len(self.weak) < NAMED:
            self.weak.append((cell.nodeid, cell.error.message if cell.error is not None else ""))
        if cell.status in PASSING and any(output.not_finite for output in cell.outputs):
            self.not_finite_in_all += 1
            if len(self.not_finite) < NAMED:
                self.not_finite.append((cell.nodeid, "; ".join(cell.notes)))

    @property
    def total(self) -> int:
        """Return the number of all cells."""
        return self.counts.total()

    @property
    def weak_in_all(self) -> int:
        """Return the number of weak cells that were not expected to be weak."""
        return sum(count for key, count in self.counts.items() if key.status == "weak" and not key.expected)

    @property
    def surprises(self) -> int:
        """Return the number of cells that neither passed nor were skipped, and were not expected so."""
        harmless = ("pass", "skip")
        return sum(count for key, count in self.counts.items() if key.status not in harmless and not key.expected)

    @property
    def reused(self) -> int:
        """Return the number of results of earlier sessions."""
        return sum(count for key, count in self.counts.items() if key.reused)
