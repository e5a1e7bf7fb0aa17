"""Merge a release's kernel tiers: each case is published with its worst tier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_t2n.records.changes import describe_cell
from pytest_t2n.records.outline import outline_of
from pytest_t2n.records.schema import CellLine, EngineLine
from pytest_t2n.report.matrix import Matrix, Row
from t2n_core.level import LEVELS

_SEVERITY = ("mismatch", "crash", "timeout", "oom", "error", "unsupported", "not_run", "weak", "skip", "pass")
_LOOSENESS = {level.value: index for index, level in enumerate(LEVELS)}


@dataclass(frozen=True, slots=True)
class Release:
    """The columns of one release on one platform and runtime: its tiers."""

    name: str
    """Title of the columns without the tier."""
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TierChange:
    """A case whose status or level differs between the tiers of a release."""

    case: str
    release: str
    cells: tuple[tuple[str, CellLine], ...]
    """Each tier with the outline of its cell."""

    @property
    def status_differs(self) -> bool:
        """Return whether the statuses of the tiers differ, not only their levels."""
        return len({cell.status for _, cell in self.cells}) > 1

    @property
    def worst(self) -> str:
        """Return the published result, with its tiers: `pass approximate (no-fma)`."""
        return worst_text(self.cells)

    @property
    def text(self) -> str:
        """Return the result of each tier: `native: pass exact, no-fma: pass approximate`."""
        return ", ".join(f"{tier}: {describe_cell(cell)}" for tier, cell in self.cells)


def releases_of(columns: Sequence[EngineLine]) -> list[Release]:
    """Return the releases in the order of their first columns."""
    groups: dict[str, list[int]] = {}
    for index, engine in enumerate(columns):
        groups.setdefault(without_tier(engine), []).append(index)
    return [Release(name, tuple(indices)) for name, indices in groups.items()]


def without_tier(engine: EngineLine) -> str:
    """Return the title of a column without its tier: `tract 0.23.8` of `tract 0.23.8 no-fma`."""
    return " ".join(word for word in engine.title.split(" ") if word != engine.tier)


def worst_of(cells: Iterable[CellLine | None]) -> CellLine | None:
    """Return the cell that represents all: the worst failure, or the pass at the loosest level."""
    return max((cell for cell in cells if cell is not None), key=_badness, default=None)


def worst_text(cells: Sequence[tuple[str, CellLine]]) -> str:
    """Return the worst result of tiers and cells, with its tiers unless these are all: `pass exact`."""
    worst = worst_of(cell for _, cell in cells)
    assert worst is not None
    tiers = [tier for tier, cell in cells if _badness(cell) == _badness(worst)]
    text = describe_cell(worst)
    return text if len(tiers) == len(cells) else f"{text} ({', '.join(tiers)})"


class TierFold:
    """Counts the changes between the tiers of a release, and keeps the first ones."""

    def __init__(self, matrix: Matrix, most: int) -> None:
        """Keep at most `most` changes of a kind."""
        self._matrix, self._most = matrix, most
        self.releases = [release for release in releases_of(matrix.columns) if len(release.columns) > 1]
        """The releases with several tiers."""
        self.flips = 0
        """Number of changes of the status."""
        self.others = 0
        """Number of changes of the level only."""
        self._kept: dict[bool, list[TierChange]] = {True: [], False: []}

    def add(self, row: Row) -> None:
        """Add a row."""
        for change in row_changes(self._matrix, row, self.releases):
            self.flips += change.status_differs
            self.others += not change.status_differs
            if len(self._kept[change.status_differs]) < self._most:
                self._kept[change.status_differs].append(change)

    @property
    def changes(self) -> list[TierChange]:
        """Return the first changes, other statuses before other levels, by case."""
        return [*self._kept[True], *self._kept[False]][: self._most]


def row_changes(matrix: Matrix, row: Row, releases: Iterable[Release]) -> Iterator[TierChange]:
    """Yield the changes of one case between the tiers of these releases."""
    for release in releases:
        cells = tiers_of(matrix, row, release)
        if len({(cell.status, cell.level) for _, cell in cells}) > 1:
            yield TierChange(row.case, release.name, tuple((tier, outline_of(cell)) for tier, cell in cells))


def tiers_of(matrix: Matrix, row: Row, release: Release) -> list[tuple[str, CellLine]]:
    """Return each tier of a release with a cell for the case, and that cell."""
    pairs = ((matrix.columns[index].tier, row.cells[index]) for index in release.columns)
    return [(tier, cell) for tier, cell in pairs if cell is not None]


def _badness(cell: CellLine) -> tuple[int, int]:
    return -_SEVERITY.index(cell.status), _LOOSENESS.get(cell.level or "", -1)
