"""Versions in which a case or an operator works, as ranges: "since 0.21.7, partly 0.20.22 (3 of 5)"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_t2n.report.matrix import Matrix, Row, is_proven

_UNKNOWN = ("skip", "not_run")


@dataclass(frozen=True, slots=True)
class Share:
    """Number of cases that ran, and that passed, in one version."""

    label: str
    passed: int
    ran: int

    def plus(self, other: Share) -> Share:
        """Return the share of the cases of both."""
        return Share(self.label, self.passed + other.passed, self.ran + other.ran)


@dataclass(frozen=True, slots=True)
class OpSupport:
    """Support of an operator over the versions of the matrix."""

    op: str
    cases: int
    text: str
    shares: tuple[Share, ...]


def support_ranges(shares: Sequence[Share]) -> str:
    """Return ranges of supporting versions, given shares in ascending order; versions without a run are left out.

    `since` and `until` refer to the versions of this matrix, not of those between them.
    """
    tried = [share for share in shares if share.ran]
    if not tried:
        return "not run"
    full_support = [share.passed == share.ran for share in tried]
    parts = [f"partly {s.label} ({s.passed} of {s.ran})" for s in tried if 0 < s.passed < s.ran]
    if all(full_support):
        return "all"
    if not any(full_support):
        return ", ".join(parts) or "none"
    return ", ".join([*_runs([share.label for share in tried], full_support), *parts])


def row_support(matrix: Matrix, row: Row, ladder: Sequence[Sequence[int]]) -> str:
    """Return the ranges over the released versions of tract; in a matrix without any, over all engines.

    `ladder` is the matrix's.
    """
    return support_ranges([_share(matrix, columns, row) for columns in ladder])


class SupportFold:
    """Counts the cases of each operator that ran, and that passed, in each version."""

    def __init__(self, matrix: Matrix) -> None:
        self._matrix, self._ladder = matrix, ladder_of(matrix)
        self._cases: Counter[str] = Counter()
        self._shares: dict[str, list[Share]] = {}

    def add(self, row: Row) -> None:
        """Add a row."""
        op = row.op
        if not op:
            return
        self._cases[op] += 1
        shares = [_share(self._matrix, columns, row) for columns in self._ladder]
        totals = self._shares.get(op)
        self._shares[op] = shares if totals is None else [a.plus(b) for a, b in zip(totals, shares, strict=True)]

    def support(self) -> list[OpSupport]:
        """Return the support of the operators under test, by name."""
        return [
            OpSupport(op, self._cases[op], support_ranges(shares), tuple(shares))
            for op, shares in sorted(self._shares.items())
        ]


def ladder_of(matrix: Matrix) -> list[list[int]]:
    """Return the columns of each release in order, with all its kernel tiers, runtimes and platforms.

    The user's own binary is listed beside the releases, not between them.
    """
    releases: dict[str, list[int]] = {}
    for index, engine in enumerate(matrix.columns):
        if engine.qualified_target == "tract" and engine.kind != "cli":
            releases.setdefault(engine.version, []).append(index)
    return list(releases.values()) or [[index] for index in range(len(matrix.columns))]


def _share(matrix: Matrix, columns: Sequence[int], row: Row) -> Share:
    """Return whether a case ran, and passed, in all of these columns where it ran."""
    ran = [cell for i in columns if (cell := row.cells[i]) and cell.status not in _UNKNOWN]
    first = matrix.columns[columns[0]]
    name = first.version if first.qualified_target == "tract" and first.kind != "cli" else first.label
    return Share(name, int(bool(ran) and all(map(is_proven, ran))), int(bool(ran)))


def _runs(labels: Sequence[str], full_support: Sequence[bool]) -> list[str]:
    texts, start = [], None
    for index, good in enumerate([*full_support, False]):
        if good and start is None:
            start = index
        elif not good and start is not None:
            texts.append(_range(labels, start, index - 1))
            start = None
    return texts


def _range(labels: Sequence[str], first: int, last: int) -> str:
    if last == len(labels) - 1:
        return f"since {labels[first]}"
    if first == 0:
        return f"until {labels[last]}"
    return labels[first] if first == last else f"{labels[first]} to {labels[last]}"
