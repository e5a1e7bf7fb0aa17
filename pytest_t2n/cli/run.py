"""`t2n matrix run --bundle DIR` checks the cells of a bundle in engines of this machine. It never imports torch."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.version import InvalidVersion, Version
from rich.console import Console
from rich.progress import Progress

from pytest_t2n.cli.engine_choice import add_engine_options, engines_closed, engines_of, runner_of
from pytest_t2n.cli.judged import JudgedCells
from pytest_t2n.cli.output import say, show_cells
from pytest_t2n.expect.entries import ExpectationError, Expectations, glob_fits, read_expectations
from pytest_t2n.records.cell import Cell, SelectedEngine
from pytest_t2n.records.lock import locked
from pytest_t2n.records.nodeids import names_of
from pytest_t2n.records.run_line import run_line
from pytest_t2n.records.schema import CellLine, GraphLine, RecordError
from pytest_t2n.run.bundles import CheckEntry, read_bundles, read_samples
from pytest_t2n.run.export_summary import ExportSummary, clipped_graph
from t2n_core.errors import T2NError
from t2n_core.text import visible

if TYPE_CHECKING:
    from t2n_core.engine.protocol import Engine

_DESCRIBED = 10
"""Failures whose numbers are printed; the others are in the report."""


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the options of `t2n matrix run`."""
    parser.add_argument("--bundle", type=Path, required=True, metavar="DIR", help="what --t2n-bundle wrote")
    parser.add_argument("--case", metavar="GLOB", help="only these, by the node id without the engine")
    parser.add_argument("--report", type=Path, metavar="DIR", help="write matrix.jsonl and the report there")
    parser.add_argument("--expect", type=Path, action="append", default=[], metavar="FILE", help="as --t2n-expect")
    add_engine_options(parser)
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="engines that run at the same time")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    try:
        return run_bundle(options)
    except (RecordError, ExpectationError, OSError) as exc:
        raise T2NError(str(exc).replace("--t2n-", "--")) from None


def run_bundle(options: argparse.Namespace) -> int:
    """Return exit status 1 if a cell fails unexpectedly, or passes although an entry expects a failure."""
    from pytest_t2n.report.matrix import is_surprise

    manifest = read_bundles(options.bundle)
    console = Console(stderr=True)
    engines = engines_of(options, console)
    expectations = read_expectations(options.expect, Path.cwd())
    arguments = ["matrix", "run", *(f"--tract={spec}" for spec in options.tract)]
    arguments += [f"--{name}={value}" for name in ("cpu", "runtime") if (value := getattr(options, name))]
    run = run_line(engines, arguments=arguments, exporters=[manifest.exporter])
    exporter = manifest.exporter.key
    plan = [
        (checks, _cell_of(checks[0], engine))
        for engine in engines
        for checks in plan_checks(manifest.checks, engine, options.case)
    ]
    with ExitStack() as stack:
        if options.report is not None:
            stack.enter_context(locked(options.report))
        texts: dict[str, str] = {}
        judged = JudgedCells(options.report, run, [cell for _, cell in plan])
        progress = stack.enter_context(Progress(console=console, transient=True))
        task = progress.add_task("cells", total=len(plan))

        def run_engine(engine: SelectedEngine) -> None:
            runner = runner_of(engine)
            for checks, cell in plan:
                if cell.engine is engine and not judged.stopped:
                    record, graph, text = _judge(options, runner, checks, cell, expectations)
                    texts[record.nodeid] = text
                    judged.add(_exported_by(exporter, record), graph)
                    progress.advance(task)

        with engines_closed(), ThreadPoolExecutor(options.jobs) as pool:
            futures = [pool.submit(run_engine, engine) for engine in engines]
            try:
                for future in futures:
                    future.result()
            except KeyboardInterrupt:
                judged.stop("interrupted")  # threads end behind the cell that they are in
        judged.finish()
    if judged.stopped:
        raise KeyboardInterrupt
    cells = judged.cells
    mended = [cell for cell in cells if cell.status == "pass" and _entry(expectations, cell) is not None]
    surprises = [cell for cell in cells if is_surprise(cell)] + mended
    show_cells(surprises if surprises else cells)
    for cell in surprises[:_DESCRIBED]:
        print(f"\n{visible(cell.nodeid)}\n{texts[cell.nodeid]}")
    if surprises:
        say(f"{len(surprises)} of {len(cells)} cells are not as expected")
    return 1 if surprises or not cells else 0


def plan_checks(
    checks: Iterable[CheckEntry], engine: SelectedEngine, case: str | None = None
) -> list[list[CheckEntry]]:
    """Return the checks for one engine by case: of the archive exported for it, or for the version next to it.

    An archive of an older version is the better choice, since releases add operators and drop none. The kernel tiers of
    a version have the same archives, and any of them will do.
    """
    by_case: dict[str, dict[str, dict[str, list[CheckEntry]]]] = {}
    for check in checks:
        if check.target == engine.target and (not case or any(glob_fits(case, name) for name in names_of(check.case))):
            of_version = by_case.setdefault(check.case, {}).setdefault(check.version, {})
            of_version.setdefault(check.label, []).append(check)
    chosen = [versions[_nearest(list(versions), engine.version)] for versions in by_case.values()]
    return [labels.get(engine.label) or next(iter(labels.values())) for labels in chosen]


def _exported_by(platform: str, cell: CellLine) -> CellLine:
    """Return the cell with the platform of its export, if it was judged on another."""
    return cell if cell.platform == platform else msgspec.structs.replace(cell, exported=platform)


def _nearest(versions: Sequence[str], wanted: str) -> str:
    if wanted in versions:
        return wanted
    try:
        known, goal = sorted(versions, key=Version), Version(wanted)
    except InvalidVersion:
        return versions[-1]
    older = [version for version in known if Version(version) <= goal]
    return older[-1] if older else known[0]


def _cell_of(check: CheckEntry, engine: SelectedEngine) -> Cell:
    """Return the cell of a check on an engine, which may be another one than its archive was exported for."""
    return Cell(engine.id.join(check.nodeid.rsplit(check.engine_id, 1)), check.case, engine)


def _judge(
    options: argparse.Namespace, runner: Engine, checks: Sequence[CheckEntry], cell: Cell, expectations: Expectations
) -> tuple[CellLine, GraphLine | None, str]:
    """Return the record of a cell after all its checks, and the graph and the description of the decisive one."""
    from pytest_t2n.records.from_outcome import outcome_record
    from pytest_t2n.run.cell_run import decisive

    outcomes = [_check(options, runner, cell.engine, check) for check in checks]
    outcome = decisive(outcomes)
    assert outcome is not None
    place = outcomes.index(outcome)
    if checks[0].version != cell.engine.version:
        outcome = replace(outcome, facts={**outcome.facts, "exported_for": checks[0].version})
    record = outcome_record(cell, outcome)
    graph = ExportSummary(graph=clipped_graph(options.bundle / checks[place].archive)).graph_line
    if graph is not None:
        record = msgspec.structs.replace(record, graph=graph.key)
    entry = _entry(expectations, record)
    if entry is not None and entry.holds(record.status, record.stage):
        record = msgspec.structs.replace(record, expected=f"{entry.why} [{entry.place}]")
    return record, graph, outcome.describe()


def _check(options: argparse.Namespace, runner: Engine, engine: SelectedEngine, check: CheckEntry) -> Any:
    from t2n_core.check.outcome import Outcome
    from t2n_core.check.parity import check_parity

    try:
        samples = read_samples(options.bundle, check)
        archive = options.bundle / check.archive
        outcome = check_parity(
            runner,
            archive,
            samples,
            tolerance=check.judged,
            output_names=check.output_names,
            timeout=options.timeout,
            constant=check.constant_outputs,
        )
    except (OSError, ValueError, KeyError) as exc:
        outcome = Outcome.from_error(exc, "load")
    return replace(_without_metrics(outcome, check), engine=engine.title)


def _without_metrics(outcome: Any, check: CheckEntry) -> Any:
    """Return the outcome, a pass as a weak one where metrics were to judge, which no bundle holds."""
    if not check.metrics or outcome.status.value != "pass":
        return outcome
    from t2n_core.check.outcome import ErrorInfo, Stage, Status

    message = f"the metrics {', '.join(check.metrics)} are functions of the test, and no bundle holds them"
    error = ErrorInfo.of(Stage.COMPARE, "WeakCheck", message, hint="run the test itself")
    return replace(outcome, status=Status.WEAK, error=error)


def _entry(expectations: Expectations, cell: CellLine) -> Any:
    return expectations.find(cell.case, cell.target, cell.version, cell.label)


__all__ = ["add_run", "plan_checks", "run_bundle"]
