"""The plan of a run: the checks of a bundle for each cell, and the part that is judged here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import msgspec
from packaging.version import InvalidVersion, Version

from pytest_t2n.config.shard import Shard, cut_cases
from pytest_t2n.expect.entries import glob_fits
from pytest_t2n.records.cell import Cell, SelectedEngine
from pytest_t2n.records.completeness import plan_for
from pytest_t2n.records.nodeids import names_of
from pytest_t2n.records.schema import PlanLine
from pytest_t2n.run.bundles import CheckEntry
from t2n_core.engine.paths import EnginePath


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """A cell with the checks that judge it."""

    cell: Cell
    checks: Sequence[CheckEntry]


@dataclass(frozen=True, slots=True)
class Plan:
    """A run's cells by case, each case's cells on all engines in a row."""

    cases: Mapping[str, Sequence[PlannedCell]]
    line: PlanLine

    @property
    def cells(self) -> list[Cell]:
        """Return all cells in order."""
        return [planned.cell for cells in self.cases.values() for planned in cells]


def plan_run(
    checks: Iterable[CheckEntry],
    engines: Sequence[SelectedEngine],
    case: str | None = None,
    shard: Shard | None = None,
    durations: Mapping[str, float] | None = None,
) -> Plan:
    """Return the cells of a bundle on these engines, of the cases that fit `case`, or the part of a shard.

    `durations` are seconds by case, which balance shards.
    """
    checks = list(checks)
    exporters = dict.fromkeys(check.exporter for check in checks)
    columns = [_with_exporter(engine, exporter) for exporter in exporters for engine in engines]
    chosen = [(engine, plan_checks(checks, engine, case)) for engine in columns]
    cases: dict[str, list[PlannedCell]] = {check.case: [] for check in checks}
    for engine, groups in chosen:
        for group in groups:
            cases[group[0].case].append(PlannedCell(_cell_of(group[0], engine), group))
    cases = {name: cells for name, cells in cases.items() if cells}
    all_cells = [planned for cells in cases.values() for planned in cells]
    line = msgspec.structs.replace(plan_for(planned_cell.cell for planned_cell in all_cells), sha256=_digest(all_cells))
    if shard is None:
        return Plan(cases, line)
    sizes = Counter({name: len(cells) for name, cells in cases.items()})
    cut = cut_cases(sizes, durations or {}, shard.count)
    own_cases = {name: cells for name, cells in cases.items() if cut.shards[name] == shard.index}
    part = plan_for(planned_cell.cell for cells in own_cases.values() for planned_cell in cells)
    nodeids = [planned_cell.cell.nodeid for planned_cell in all_cells]
    return Plan(
        own_cases, msgspec.structs.replace(part, sha256=line.sha256, shard=str(shard), nodeids=nodeids, cut=cut.digest)
    )


def plan_checks(
    checks: Iterable[CheckEntry], engine: SelectedEngine, case: str | None = None
) -> list[list[CheckEntry]]:
    """Return the checks for one engine by case: of the archive exported for it, or for the nearest version.

    An archive of an older version is preferred, since releases add operators and remove none. The kernel tiers of a
    version have the same archives, and any of them is used.
    """
    by_case: dict[str, dict[str, dict[str, list[CheckEntry]]]] = {}
    for check in checks:
        is_own = (check.target, check.exporter) == (engine.target, engine.exporter)
        if is_own and (not case or any(glob_fits(case, name) for name in names_of(check.case))):
            of_version = by_case.setdefault(check.case, {}).setdefault(check.version, {})
            of_version.setdefault(check.label, []).append(check)
    chosen = [versions[_nearest(list(versions), engine.version)] for versions in by_case.values()]
    return [labels.get(engine.label) or next(iter(labels.values())) for labels in chosen]


def _with_exporter(engine: SelectedEngine, exporter: str) -> SelectedEngine:
    """Return the engine for an exporter's files; files not from this package's exporter run on its main path."""
    if not exporter or engine.resolved is None:
        return engine
    return replace(engine, exporter=exporter, resolved={**engine.resolved, "paths": EnginePath.DECLUTTER.value})


def _nearest(versions: Sequence[str], requested_version: str) -> str:
    if requested_version in versions:
        return requested_version
    try:
        candidates, goal = sorted(versions, key=Version), Version(requested_version)
    except InvalidVersion:
        return versions[-1]
    older = [version for version in candidates if Version(version) <= goal]
    return older[-1] if older else candidates[0]


def _cell_of(check: CheckEntry, engine: SelectedEngine) -> Cell:
    """Return the cell of a check on an engine, which may differ from the export's."""
    return Cell(engine.id.join(check.nodeid.rsplit(check.engine_id, 1)), check.case, engine)


def _digest(cells: Iterable[PlannedCell]) -> str:
    """Return a digest that is equal for runs with the same cells and checks."""
    digest = sha256()
    for line in sorted(
        f"{planned_cell.cell.nodeid}\0".encode() + msgspec.json.encode(planned_cell.checks) for planned_cell in cells
    ):
        digest.update(line + b"\n")
    return digest.hexdigest()
