"""Changes between two matrices, or between two versions in one, the most important first."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from typing import IO

from pytest_t2n.records.schema import CellLine, RunLine
from t2n_core.level import TractCheckTolerance

Case = tuple[str, Sequence[CellLine]]
"""A case with its cells."""
_SHOWN = 4
"""Most operators in the line of a change."""
_FACTS = ("source", "platform")
_PROOF = {"pass": 2, "weak": 1}
"""How much a status proves; all others prove nothing."""


class ChangeKind(StrEnum):
    """Kinds of change, worst first."""

    REGRESSION = "regression"
    LOOSER = "looser"
    """Passes, at a looser level than before."""
    OTHER = "other failure"
    GONE = "gone"
    NEW = "new"
    TIGHTER = "tighter"
    FIX = "fix"
    OPERATORS = "operators"
    """The same result, with other operators in the graph after the engine's optimiser."""


@dataclass(frozen=True, slots=True)
class Change:
    """One cell whose result differs."""

    kind: ChangeKind
    case: str
    column: str
    before: CellLine | None
    after: CellLine | None

    def to_dict(self) -> dict[str, str]:
        """Return the change as a line of text per field: `before` and `after` are results, or counts of operators."""
        turns = operator_changes(self.before, self.after)
        before, after = describe_cell(self.before), describe_cell(self.after)
        if self.kind is ChangeKind.OPERATORS:
            more = [f"{len(turns) - _SHOWN} more"] * (len(turns) > _SHOWN)
            before = ", ".join([*(f"{name} {was}" for name, was, _ in turns[:_SHOWN]), *more])
            after = ", ".join([*(f"{name} {now}" for name, _, now in turns[:_SHOWN]), *more])
        return {
            "kind": self.kind.value,
            "case": self.case,
            "column": self.column,
            "before": before,
            "after": after,
            "operators": ", ".join(f"{name} {was} → {now}" for name, was, now in turns),
        }


def compare_matrices(before: Iterable[CellLine], after: Iterable[CellLine]) -> list[Change]:
    """Return the changes of all cells by case and engine, worst first."""
    return _in_order(each_change(_by_case(before), _by_case(after)))


def compare_columns(cells: Iterable[CellLine], before: str, after: str) -> list[Change]:
    """Return the changes from one engine of a matrix to another, worst first."""
    return _in_order(each_column_change(_by_case(cells), before, after))


def each_change(before: Iterable[Case], after: Iterable[Case]) -> Iterator[Change]:
    """Yield the changes of all cells by case and engine; both sides are sorted by name, and so are the changes."""
    for case, old, new in _side_by_side(before, after):
        was, now = ({cell.engine: cell for cell in cells} for cells in (old, new))
        for column in sorted({**was, **now}):
            yield from _change(case, column, was.get(column), now.get(column))


def each_column_change(cases: Iterable[Case], before: str, after: str) -> Iterator[Change]:
    """Yield the changes from one engine of a matrix to another, in the order of the cases."""
    for case, cells in cases:
        by_engine = {cell.engine: cell for cell in cells}
        yield from _change(case, f"{before} → {after}", by_engine.get(before), by_engine.get(after))


class ChangeList:
    """Changes in the order of their kinds, worst first; stored on disk."""

    def __init__(self, changes: Iterable[Change]) -> None:
        """Take changes in the order of their cases. Raises OSError."""
        self._closing = ExitStack()
        self._files = {kind: self._closing.enter_context(_file()) for kind in ChangeKind}
        self.counts: Counter[ChangeKind] = Counter()
        for change in changes:
            self.counts[change.kind] += 1
            self._files[change.kind].write(json.dumps(change.to_dict(), ensure_ascii=False).encode() + b"\n")

    def __len__(self) -> int:
        """Return the number of changes."""
        return self.counts.total()

    def __iter__(self) -> Iterator[dict[str, str]]:
        """Yield each change as a line of text per field; see `Change.to_dict`."""
        for file in self._files.values():
            file.seek(0)
            yield from map(json.loads, file)

    def __enter__(self) -> ChangeList:
        return self

    def __exit__(self, *problem: object) -> None:
        self._closing.close()


def describe_cell(cell: CellLine | None) -> str:
    """Return the status, with the level of a pass or the stage of a failure."""
    if cell is None:
        return "none"
    agrees = cell.status in _PROOF
    return f"{cell.status} {cell.level or ''}".strip() if agrees else f"{cell.status} at {cell.stage}"


def operator_changes(before: CellLine | None, after: CellLine | None) -> list[tuple[str, int, int]]:
    """Return the operators whose number of nodes differs, with both numbers, the largest difference first.

    There are none if one of the cells has no list of operators.
    """
    if before is None or after is None or not before.operators or not after.operators:
        return []
    was, now = before.operators, after.operators
    names = [name for name in {**was, **now} if was.get(name, 0) != now.get(name, 0)]
    names.sort(key=lambda name: (-abs(was.get(name, 0) - now.get(name, 0)), name))
    return [(name, was.get(name, 0), now.get(name, 0)) for name in names]


def count_changes(changes: Iterable[Change]) -> str:
    """Return `2 regression, 1 fix`, or `nothing changed`."""
    return describe_counts(Counter(change.kind for change in changes))


def describe_counts(counts: Mapping[ChangeKind, int]) -> str:
    """Return counts of changes as `2 regression, 1 fix`, or `nothing changed`."""
    return ", ".join(f"{counts[kind]} {kind.value}" for kind in ChangeKind if counts.get(kind)) or "nothing changed"


def _file() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _by_case(cells: Iterable[CellLine]) -> list[Case]:
    cells_by_case: dict[str, list[CellLine]] = {}
    for cell in cells:
        cells_by_case.setdefault(cell.case, []).append(cell)
    return sorted(cells_by_case.items())


def _in_order(changes: Iterable[Change]) -> list[Change]:
    order = list(ChangeKind)
    return sorted(changes, key=lambda change: (order.index(change.kind), change.case, change.column))


def _side_by_side(
    before: Iterable[Case], after: Iterable[Case]
) -> Iterator[tuple[str, Sequence[CellLine], Sequence[CellLine]]]:
    """Yield each case with its cells on both sides, which are sorted by name."""
    left, right = iter(before), iter(after)
    old, new = next(left, None), next(right, None)
    while old is not None or new is not None:
        if new is None or (old is not None and old[0] < new[0]):
            assert old is not None
            yield old[0], old[1], ()
            old = next(left, None)
        elif old is None or new[0] < old[0]:
            yield new[0], (), new[1]
            new = next(right, None)
        else:
            yield old[0], old[1], new[1]
            old, new = next(left, None), next(right, None)


def _change(case: str, column: str, before: CellLine | None, after: CellLine | None) -> Iterator[Change]:
    if before is after:
        return
    kind = _kind(before, after)
    if kind is None and operator_changes(before, after):
        kind = ChangeKind.OPERATORS
    if kind is not None:
        yield Change(kind, case, column, before, after)


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


def run_differences(before: Sequence[RunLine], after: Sequence[RunLine]) -> dict[str, str]:
    """Return the differences of two files that may change results, as text, where both files state them.

    The keys are `sources`, `versions` and `platforms`.
    """
    differences = {}
    sources, platforms = ([{getattr(run, name) for run in runs} - {""} for runs in (before, after)] for name in _FACTS)
    if all(sources) and sources[0] != sources[1]:
        differences["sources"] = "different states of the project's Python files"
    old, new = ({name: text for run in runs for name, text in run.versions.items()} for runs in (before, after))
    changed = [name for name in sorted(old | new) if old and new and old.get(name) != new.get(name)]
    if changed:
        versions = (f"{name} {old.get(name, 'none')} and {new.get(name, 'none')}" for name in changed)
        differences["versions"] = f"different versions: {', '.join(versions)}"
    if all(platforms) and platforms[0] != platforms[1]:
        names = (", ".join(sorted(of_file)) for of_file in platforms)
        differences["platforms"] = f"different platforms: {' and '.join(names)}"
    return differences
