"""Changes between two matrices, or between two versions in one, those that need attention first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pytest_t2n.records.schema import CellLine
from t2n_core.check.level import TractCheckTolerance

_PROOF = {"pass": 2, "weak": 1}
"""How much a status proves; all others prove nothing."""


class ChangeKind(StrEnum):
    """Kinds of change, gravest first."""

    REGRESSION = "regression"
    LOOSER = "looser"
    """Passes, at a looser level than before."""
    OTHER = "other failure"
    GONE = "gone"
    NEW = "new"
    TIGHTER = "tighter"
    FIX = "fix"


@dataclass(frozen=True, slots=True)
class Change:
    """One cell whose result differs."""

    kind: ChangeKind
    case: str
    column: str
    before: CellLine | None
    after: CellLine | None

    def to_dict(self) -> dict[str, str]:
        """Return the change as a line of text per field."""
        return {
            "kind": self.kind.value,
            "case": self.case,
            "column": self.column,
            "before": describe_cell(self.before),
            "after": describe_cell(self.after),
        }


def compare_matrices(before: Iterable[CellLine], after: Iterable[CellLine]) -> list[Change]:
    """Return the changes of all cells by case and engine, gravest first."""
    return _compare({(c.case, c.engine): c for c in before}, {(c.case, c.engine): c for c in after})


def compare_columns(cells: Iterable[CellLine], before: str, after: str) -> list[Change]:
    """Return the changes from one engine of a matrix to another, gravest first."""
    cells = list(cells)
    column = f"{before} → {after}"
    return _compare(
        {(cell.case, column): cell for cell in cells if cell.engine == before},
        {(cell.case, column): cell for cell in cells if cell.engine == after},
    )


def describe_cell(cell: CellLine | None) -> str:
    """Return the status, with the level of a pass or the stage of a failure."""
    if cell is None:
        return "none"
    agrees = cell.status in _PROOF
    return f"{cell.status} {cell.level or ''}".strip() if agrees else f"{cell.status} at {cell.stage}"


def count_changes(changes: Iterable[Change]) -> str:
    """Return `2 regression, 1 fix`, or `nothing changed`."""
    counts = Counter(change.kind for change in changes)
    return ", ".join(f"{counts[kind]} {kind.value}" for kind in ChangeKind if counts[kind]) or "nothing changed"


def _compare(before: Mapping[tuple[str, str], CellLine], after: Mapping[tuple[str, str], CellLine]) -> list[Change]:
    found = []
    for key in {**before, **after}:
        kind = _kind(before.get(key), after.get(key))
        if kind is not None:
            found.append(Change(kind, *key, before.get(key), after.get(key)))
    order = list(ChangeKind)
    return sorted(found, key=lambda change: (order.index(change.kind), change.case, change.column))


def _kind(before: CellLine | None, after: CellLine | None) -> ChangeKind | None:
    if before is None or after is None:
        return ChangeKind.NEW if before is None else ChangeKind.GONE
    if before.status == after.status == "pass":
        if before.level is None or after.level is None or before.level == after.level:
            return None
        looser = TractCheckTolerance(before.level) < TractCheckTolerance(after.level)
        return ChangeKind.LOOSER if looser else ChangeKind.TIGHTER
    proof = _PROOF.get(before.status, 0), _PROOF.get(after.status, 0)
    if proof[0] != proof[1]:
        return ChangeKind.REGRESSION if proof[0] > proof[1] else ChangeKind.FIX
    return None if (before.status, before.stage) == (after.status, after.stage) else ChangeKind.OTHER


__all__ = ["Change", "ChangeKind", "compare_columns", "compare_matrices", "count_changes", "describe_cell"]
