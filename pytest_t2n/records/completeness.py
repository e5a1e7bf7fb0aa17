"""Completeness of records: the planned cells, those without a record, and how the session ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pytest_t2n.records.cell import Cell
from pytest_t2n.records.nodeids import case_id
from pytest_t2n.records.schema import SCHEMA, CellLine, EngineLine, ErrorLine, PlanLine, Record, RunLine
from t2n_core.parity.stage import Stage, Status


@dataclass(frozen=True, slots=True)
class Completeness:
    """The state of a file of records."""

    found: int
    """Number of planned cells that have a record; of all cells if there is no plan."""
    planned: int | None
    """Number of planned cells; None if there is no plan."""
    ended: bool
    """True if the last record is the end of the session."""
    stopped: str = ""
    """The reason why the session stopped early."""
    not_run: int = 0
    """Number of cells recorded as not run."""

    @property
    def is_complete(self) -> bool:
        """Return whether every planned cell has a record, and the session ended."""
        return self.ended and self.found == self.planned

    @property
    def notice(self) -> str:
        """Return a notice about missing cells: `incomplete: 8 of 40 cells`; empty if there are none."""
        if self.planned is None:
            return f"incomplete: {self.found} cells, and no plan states how many there should be"
        if not self.is_complete:
            rest = ", and the session did not end" if self.found == self.planned else ""
            return f"incomplete: {self.found} of {self.planned} cells{rest}"
        if self.not_run:
            early = "stopped early: " if self.stopped else ""
            why = f": {self.stopped}" if self.stopped else ""
            return f"{early}{self.not_run} of {self.planned} cells did not run{why}"
        return ""


def last_plans(records: Iterable[Record]) -> list[PlanLine]:
    """Return the last plan of each platform."""
    return list({record.platform: record for record in records if isinstance(record, PlanLine)}.values())


def plan_for(cells: Iterable[Cell]) -> PlanLine:
    """Return the plan of a file for these cells, all of one platform."""
    by_engine: dict[str, dict[str, None]] = {}
    platform = ""
    for cell in cells:
        by_engine.setdefault(cell.engine.id, {})[cell.nodeid] = None  # pytest can collect a test twice
        platform = cell.engine.platform
    return PlanLine(SCHEMA, cells={engine: list(nodeids) for engine, nodeids in by_engine.items()}, platform=platform)


def missing_cells(
    runs: Iterable[RunLine], plans: Iterable[PlanLine], is_missing: Callable[[str, str], bool]
) -> list[CellLine]:
    """Return the planned cells without a record as cells that did not run.

    `is_missing` returns whether there is no record of a node id on the platform with a key.
    """
    engines = {(engine.id, engine.platform): engine for run in runs for engine in run.engines}
    return [
        _planned_cell(nodeid, name, plan.platform, engines)
        for plan in plans
        for name, nodeids in plan.cells.items()
        for nodeid in nodeids
        if is_missing(nodeid, plan.platform)
    ]


def _planned_cell(
    nodeid: str, engine_id: str, platform: str, engines: Mapping[tuple[str, str], EngineLine]
) -> CellLine:
    """Return a planned cell without a record as not run."""
    target, _, label = engine_id.partition("-")
    engine = engines.get((engine_id, platform)) or EngineLine(target, label, label)
    error = ErrorLine("NoRecord", "planned, and the file has no record of it")
    return CellLine(
        schema=SCHEMA,
        nodeid=nodeid,
        case=case_id(nodeid, engine_id),
        target=engine.target,
        version=engine.version,
        label=engine.label,
        exporter=engine.exporter,
        status=Status.NOT_RUN,
        stage=Stage.SETUP,
        error=error,
        platform=platform,
        on=engine.on,
    )
