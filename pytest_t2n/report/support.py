"""Versions in which a case or an operator works, as ranges: "since 0.21.7, partly 0.20.22 (3 of 5)"."""

from __future__ import annotations

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
    known = [share for share in shares if share.ran]
    if not known:
        return "not run"
    whole = [share.passed == share.ran for share in known]
    parts = [f"partly {s.label} ({s.passed} of {s.ran})" for s in known if 0 < s.passed < s.ran]
    if all(whole):
        return "all"
    if not any(whole):
        return ", ".join(parts) or "none"
    return ", ".join([*_runs([share.label for share in known], whole), *parts])


def row_support(matrix: Matrix, row: Row) -> str:
    """Return the ranges over the released versions of tract; in a matrix without any, over all engines."""
    return support_ranges([_share(matrix, columns, [row]) for columns in _ladder(matrix)])


def op_support(matrix: Matrix) -> list[OpSupport]:
    """Return the support of the operators that cases are about, by name."""
    by_op: dict[str, list[Row]] = {}
    for row in matrix.rows:
        if row.op:
            by_op.setdefault(row.op, []).append(row)
    ladder = _ladder(matrix)
    found = []
    for op, rows in sorted(by_op.items()):
        shares = tuple(_share(matrix, columns, rows) for columns in ladder)
        found.append(OpSupport(op, len(rows), support_ranges(shares), shares))
    return found


def _ladder(matrix: Matrix) -> list[list[int]]:
    """Return the columns of each release in order, with all its kernel tiers, runtimes and platforms.

    The user's own binary stands beside the releases, not between them.
    """
    releases: dict[str, list[int]] = {}
    for index, engine in enumerate(matrix.columns):
        if engine.target == "tract" and engine.kind != "cli":
            releases.setdefault(engine.version, []).append(index)
    return list(releases.values()) or [[index] for index in range(len(matrix.columns))]


def _share(matrix: Matrix, columns: Sequence[int], rows: Sequence[Row]) -> Share:
    """Return the share of cases that passed in all of these columns where they ran."""
    known = [[cell for i in columns if (cell := row.cells[i]) and cell.status not in _UNKNOWN] for row in rows]
    ran = [cells for cells in known if cells]
    first = matrix.columns[columns[0]]
    name = first.version if first.target == "tract" and first.kind != "cli" else first.label
    return Share(name, sum(all(map(is_proven, cells)) for cells in ran), len(ran))


def _runs(labels: Sequence[str], whole: Sequence[bool]) -> list[str]:
    texts, start = [], None
    for index, good in enumerate([*whole, False]):
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


__all__ = ["OpSupport", "Share", "op_support", "row_support", "support_ranges"]
