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
    return support_ranges([_share(matrix, index, [row]) for index in _ladder(matrix)])


def op_support(matrix: Matrix) -> list[OpSupport]:
    """Return the support of the operators that cases are about, by name."""
    by_op: dict[str, list[Row]] = {}
    for row in matrix.rows:
        if row.op:
            by_op.setdefault(row.op, []).append(row)
    ladder = _ladder(matrix)
    found = []
    for op, rows in sorted(by_op.items()):
        shares = [_share(matrix, index, rows) for index in range(len(matrix.columns))]
        text = support_ranges([shares[index] for index in ladder])
        found.append(OpSupport(op, len(rows), text, tuple(shares)))
    return found


def _ladder(matrix: Matrix) -> list[int]:
    """Return the columns with an order: the user's own binary stands beside the releases, not between them."""
    releases = [i for i, e in enumerate(matrix.columns) if e.target == "tract" and e.kind != "cli"]
    return releases or list(range(len(matrix.columns)))


def _share(matrix: Matrix, index: int, rows: Sequence[Row]) -> Share:
    cells = [cell for row in rows if (cell := row.cells[index]) is not None and cell.status not in _UNKNOWN]
    return Share(matrix.columns[index].label, sum(is_proven(cell) for cell in cells), len(cells))


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
