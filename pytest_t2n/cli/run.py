"""`t2n matrix run --bundle DIR` checks the cells of a bundle in engines of this machine. It never imports torch."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from packaging.version import InvalidVersion, Version
from rich.console import Console
from rich.progress import Progress

from pytest_t2n.cli.output import show_cells
from pytest_t2n.config.engines import select_engines
from pytest_t2n.config.settings import Settings
from pytest_t2n.expect.entries import ExpectationError, Expectations, glob_fits, read_expectations
from pytest_t2n.records.cell import Cell, SelectedEngine
from pytest_t2n.records.file import MATRIX_FILE, write_records
from pytest_t2n.records.nodeids import names_of
from pytest_t2n.records.run_line import run_line
from pytest_t2n.records.schema import CellLine, Record, RecordError, with_graphs
from pytest_t2n.run.bundles import CheckEntry, read_manifest, read_samples
from pytest_t2n.run.export_summary import ExportSummary, clipped_graph
from t2n_core.errors import T2NError

if TYPE_CHECKING:
    from t2n_core.engine.protocol import Engine


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the options of `t2n matrix run`."""
    parser.add_argument("--bundle", type=Path, required=True, metavar="DIR", help="what --t2n-bundle wrote")
    parser.add_argument("--tract", action="append", default=[], metavar="SPEC", help="as --t2n-tract")
    parser.add_argument("--cpu", default="", metavar="TIERS", help="as --t2n-cpu")
    parser.add_argument("--runtime", default="", metavar="NAMES", help="as --t2n-runtime")
    parser.add_argument("--khronos", action="store_true", help="the cells whose target is khronos")
    parser.add_argument("--case", metavar="GLOB", help="only these, by the node id without the engine")
    parser.add_argument("--report", type=Path, metavar="DIR", help="write matrix.jsonl and the report there")
    parser.add_argument("--expect", type=Path, action="append", default=[], metavar="FILE", help="as --t2n-expect")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="of one case in an engine")
    parser.add_argument("--offline", action="store_true", help="use engines of the cache only")
    parser.add_argument("--cache-dir", type=Path, help="where engines are kept")
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="engines that run at the same time")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    try:
        return run_bundle(options)
    except (RecordError, ExpectationError, OSError, pytest.UsageError) as exc:
        raise T2NError(str(exc).replace("--t2n-", "--")) from None


def run_bundle(options: argparse.Namespace) -> int:
    """Return exit status 1 if a cell fails unexpectedly, or passes although an entry expects a failure."""
    from pytest_t2n.report.matrix import is_surprise
    from t2n_core.engine.khronos.engine import KhronosEngine
    from t2n_core.engine.pool import close_all

    manifest = read_manifest(options.bundle)
    settings = Settings(
        tract=tuple(options.tract),
        cpu=options.cpu,
        runtime=options.runtime,
        khronos=options.khronos,
        offline=options.offline,
        cache_dir=options.cache_dir,
    )
    if not settings.selects_engines:
        raise RecordError("name engines with --tract or --khronos")
    console = Console(stderr=True)
    engines = select_engines(settings, lambda version, event: console.print(f"tract {version}: {event}"))
    expectations = read_expectations(options.expect, Path.cwd())
    arguments = ["matrix", "run", *(f"--tract={spec}" for spec in options.tract)]
    arguments += [f"--{name}={value}" for name in ("cpu", "runtime") if (value := getattr(options, name))]
    run = run_line(engines, arguments=arguments, exporters=[manifest.exporter])
    plan = [(engine, plan_checks(manifest.checks, engine, options.case)) for engine in engines]
    total = sum(len(checks) for _, checks in plan)
    graphs: dict[str, str] = {}
    try:
        with Progress(console=console, transient=True) as progress, ThreadPoolExecutor(options.jobs) as pool:
            task = progress.add_task("cells", total=total)
            futures = [
                pool.submit(_run_engine, options, engine, checks, expectations, graphs, lambda: progress.advance(task))
                for engine, checks in plan
            ]
            exporter = manifest.exporter.key
            cells = [_exported_by(exporter, cell) for future in futures for cell in future.result()]
    finally:
        close_all()
        KhronosEngine.close_shared()
    if options.report is not None:
        from pytest_t2n.report import write_report

        records: list[Record] = [run, *with_graphs(cells, graphs)]
        write_records(options.report / MATRIX_FILE, records)
        write_report(records, options.report)
    mended = [cell for cell in cells if cell.status == "pass" and _entry(expectations, cell) is not None]
    surprises = [cell for cell in cells if is_surprise(cell)] + mended
    show_cells(surprises if surprises else cells)
    if surprises:
        Console().print(f"{len(surprises)} of {len(cells)} cells are not as expected")
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


def _run_engine(
    options: argparse.Namespace,
    engine: SelectedEngine,
    plan: Sequence[Sequence[CheckEntry]],
    expectations: Expectations,
    graphs: dict[str, str],
    advance: Any,
) -> list[CellLine]:
    from pytest_t2n.records.from_outcome import outcome_record
    from pytest_t2n.run.cell_run import decisive

    runner = _runner(engine)
    cells = []
    for checks in plan:
        outcomes = [_check(options, runner, engine, check) for check in checks]
        outcome = decisive(outcomes)
        first = checks[0]
        assert outcome is not None
        place = outcomes.index(outcome)
        if first.version != engine.version:
            outcome = replace(outcome, facts={**outcome.facts, "exported_for": first.version})
        nodeid = engine.id.join(first.nodeid.rsplit(first.engine_id, 1))
        record = outcome_record(Cell(nodeid, first.case, engine), outcome)
        graph = ExportSummary(graph=clipped_graph(options.bundle / checks[place].archive)).graph_line
        if graph is not None:
            graphs[graph.key] = graph.text
            record = msgspec.structs.replace(record, graph=graph.key)
        entry = _entry(expectations, record)
        if entry is not None and entry.holds(record.status, record.stage):
            record = msgspec.structs.replace(record, expected=f"{entry.why} [{entry.place}]")
        cells.append(record)
        advance()
    return cells


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
            tolerance=check.tolerance,
            output_names=check.output_names,
            timeout=options.timeout,
            constant=check.constant_outputs,
        )
    except (OSError, ValueError, KeyError) as exc:
        outcome = Outcome.from_error(exc, "load")
    return replace(outcome, engine=engine.title)


def _runner(engine: SelectedEngine) -> Engine:
    if engine.resolved is None:
        from t2n_core.engine.khronos.engine import KhronosEngine

        return KhronosEngine.shared()
    from t2n_core.engine import ResolvedEngine, engine_for

    return engine_for(ResolvedEngine.from_dict(engine.resolved))


def _entry(expectations: Expectations, cell: CellLine) -> Any:
    return expectations.find(cell.case, cell.target, cell.version, cell.label)


__all__ = ["add_run", "plan_checks", "run_bundle"]
