"""What changed between two matrices, or between two versions in one: what somebody should look at first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pytest_t2n.records.schema import CellLine
from t2n_core.check.level import TractCheckTolerance


class Kind(StrEnum):
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
    """One cell that is not as it was."""

    kind: Kind
    case: str
    column: str
    before: CellLine | None
    after: CellLine | None

    def to_dict(self) -> dict[str, str]:
        return {
            "kind": self.kind.value,
            "case": self.case,
            "column": self.column,
            "before": describe_cell(self.before),
            "after": describe_cell(self.after),
        }


def compare_matrices(before: Iterable[CellLine], after: Iterable[CellLine]) -> list[Change]:
    """Changes of all cells by case and engine, gravest first."""
    return _compare({(c.case, c.engine): c for c in before}, {(c.case, c.engine): c for c in after})


def compare_columns(cells: Iterable[CellLine], before: str, after: str) -> list[Change]:
    """Changes from one engine of a matrix to another, gravest first."""
    cells = list(cells)
    column = f"{before} → {after}"
    return _compare(
        {(cell.case, column): cell for cell in cells if cell.engine == before},
        {(cell.case, column): cell for cell in cells if cell.engine == after},
    )


def describe_cell(cell: CellLine | None) -> str:
    """Status, and the level of a pass or the stage of a failure."""
    if cell is None:
        return "none"
    return f"{cell.status} {cell.level or ''}".strip() if cell.status == "pass" else f"{cell.status} at {cell.stage}"


def _compare(before: Mapping[tuple[str, str], CellLine], after: Mapping[tuple[str, str], CellLine]) -> list[Change]:
    found = []
    for key in {**before, **after}:
        kind = _kind(before.get(key), after.get(key))
        if kind is not None:
            found.append(Change(kind, *key, before.get(key), after.get(key)))
    order = list(Kind)
    return sorted(found, key=lambda change: (order.index(change.kind), change.case, change.column))


def _kind(before: CellLine | None, after: CellLine | None) -> Kind | None:
    if before is None or after is None:
        return Kind.NEW if before is None else Kind.GONE
    if before.status == after.status == "pass":
        if before.level is None or after.level is None or before.level == after.level:
            return None
        looser = TractCheckTolerance(before.level) < TractCheckTolerance(after.level)
        return Kind.LOOSER if looser else Kind.TIGHTER
    if before.status == "pass":
        return Kind.REGRESSION
    if after.status == "pass":
        return Kind.FIX
    return None if (before.status, before.stage) == (after.status, after.stage) else Kind.OTHER


__all__ = ["Change", "Kind", "compare_columns", "compare_matrices", "describe_cell"]
