"""`t2n matrix run --bundle DIR` checks the cells of a bundle in engines of this machine. It never imports torch."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from pytest_t2n.cli.engine_choice import add_engine_options, engines_of
from pytest_t2n.cli.judging.cluster import add_cluster_options, dask_workers
from pytest_t2n.cli.judging.journal import Journal
from pytest_t2n.cli.judging.plan import Plan, PlannedCell, plan_run
from pytest_t2n.cli.judging.processes import local_workers
from pytest_t2n.cli.judging.progress import Progress
from pytest_t2n.cli.judging.reuse import Reuse
from pytest_t2n.cli.judging.spread import Spread, Workers
from pytest_t2n.cli.judging.store import ResultStore
from pytest_t2n.cli.judging.unit import JudgedUnit, Unit, UnitCell
from pytest_t2n.cli.output import as_text, say, show_cells, warn
from pytest_t2n.config.shard import Shard
from pytest_t2n.expect.entries import Expectation, ExpectationError, Expectations, read_expectations
from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.file import decode_line, read_durations
from pytest_t2n.records.folder import lock_folder
from pytest_t2n.records.from_outcome import simple_record
from pytest_t2n.records.platform import this_platform
from pytest_t2n.records.run_line import run_line
from pytest_t2n.records.schema import CellLine, GraphLine, PlatformLine, RecordError
from pytest_t2n.run.bundle_reader import Bundle, read_bundles
from t2n_core.engine.processes.memory import limit_memory, memory_limit
from t2n_core.errors import InputError, T2NError
from t2n_core.parity.stage import Stage, Status
from t2n_core.text import reason_of, visible

_DESCRIBED = 10
"""Most failures that are printed with details; the others are in the report."""
_NAMED = 20
"""Most problems of the bundle that are printed."""


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the options of `t2n matrix run`."""
    parser.add_argument("--bundle", type=Path, required=True, metavar="DIR", help="what --t2n-bundle wrote")
    parser.add_argument("--case", metavar="GLOB", help="only these, by the node id without the engine")
    parser.add_argument("--report", type=Path, metavar="DIR", help="write matrix.jsonl and the report there")
    parser.add_argument("--resume", action="store_true", help="keep what an interrupted run left in --report")
    parser.add_argument("--reuse", metavar="DIR|URL", help="take results from there, and keep new ones there")
    parser.add_argument("--expect", type=Path, action="append", default=[], metavar="FILE", help="as --t2n-expect")
    parser.add_argument("--shard", type=_shard, metavar="I/N", help="the I-th of N parts of the cases")
    parser.add_argument("--durations", type=Path, metavar="FILE", help="as --t2n-durations")
    add_engine_options(parser)
    parser.add_argument("-j", "--jobs", type=_count, default=1, metavar="N", help="cases that run at the same time")
    add_cluster_options(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    try:
        return run_bundle(options)
    except (RecordError, ExpectationError, OSError, InputError) as exc:
        raise T2NError(reason_of(exc).replace("--t2n-", "--")) from None


def run_bundle(options: argparse.Namespace) -> int:
    """Return exit status 1 if a cell fails unexpectedly, or passes although an entry expects a failure.

    It is also 1 if a part of the bundle cannot be read.
    """
    if options.resume and options.report is None:
        raise T2NError("--resume: name the directory of the interrupted run with --report")
    bundle = read_bundles(options.bundle)
    console = Console(stderr=True)
    expectations = read_expectations(options.expect, Path.cwd())
    durations = read_durations(options.durations) if options.durations is not None else {}
    arguments = ["matrix", "run", *(f"--tract={spec}" for spec in options.tract)]
    arguments += [f"--{name}={value}" for name in ("cpu", "runtime", "paths") if (value := getattr(options, name))]
    texts: dict[str, str] = {}
    with ExitStack() as stack:
        if options.report is not None:
            stack.enter_context(lock_folder(options.report))
        workers, engines, here = stack.enter_context(_workers(options, console))
        plan = plan_run(bundle.checks, engines, options.case, options.shard, durations)
        run = run_line(engines, arguments=arguments, exporters=[bundle.exporter], here=here)
        journal = Journal(options.report, run, plan, resume=options.resume)
        if options.resume:
            say(f"--resume: {journal.kept} cells kept")
        interrupted = stack.enter_context(_interrupts())
        progress = stack.enter_context(Progress(console, len(plan.cells) - journal.kept))
        reuse = None
        if options.reuse is not None:
            store = stack.enter_context(ResultStore(options.reuse, warn))
            reuse = Reuse(store, options.bundle, here, memory_limit(), warn)

        def add(record: CellLine, graph: GraphLine | None, text: str) -> None:
            record = _with_expectation(_exported_by(bundle.exporter.key, record), expectations)
            journal.add(record, graph)
            if text and not record.expected and len(texts) < _DESCRIBED:
                texts[record.nodeid] = text
            progress.advance()

        def keep(unit: Unit, judged: JudgedUnit) -> None:
            for planned, cell in zip(unit.cells, judged.cells, strict=True):
                record, graph = decode_line(cell.record), decode_line(cell.graph) if cell.graph else None
                assert isinstance(record, CellLine)
                assert isinstance(graph, GraphLine | None)
                if reuse is not None:
                    reuse.keep(by_nodeid(unit.case, planned.nodeid), cell)
                if judged.host:
                    record = msgspec.structs.replace(record, facts={**record.facts, "host": judged.host})
                add(record, graph, cell.text)

        def lose(unit: Unit, why: str) -> None:
            for planned in plan.cases[unit.case]:
                if planned.cell.nodeid not in journal:
                    journal.add(simple_record(planned.cell, Status.NOT_RUN, Stage.SETUP, "WorkerDied", why))
                    progress.advance()

        def by_nodeid(case: str, nodeid: str) -> PlannedCell:
            return next(planned_cell for planned_cell in plan.cases[case] if planned_cell.cell.nodeid == nodeid)

        if reuse is not None:
            count = 0
            for result in reuse.stored_results(plan, lambda nodeid: nodeid not in journal):
                add(*result)
                count += 1
                if interrupted:
                    break
            say(f"--reuse: {count} of {len(plan.cells)} cells are known")
        Spread(workers, _units(options, plan, journal), keep, lose).run(lambda: bool(interrupted))
        journal.finish("interrupted" if interrupted else "")
    if interrupted:
        raise KeyboardInterrupt
    return _conclude(bundle, journal.cells, expectations, texts)


def _conclude(bundle: Bundle, cells: Sequence[CellLine], expectations: Expectations, texts: dict[str, str]) -> int:
    """Print unexpected results and problems, and return the exit status."""
    from pytest_t2n.report.matrix import is_surprise

    mended = [cell for cell in cells if cell.status == "pass" and _entry(expectations, cell) is not None]
    surprises = [cell for cell in cells if is_surprise(cell)] + mended
    show_cells(surprises if surprises else cells)
    for nodeid, text in texts.items():
        print(f"\n{visible(nodeid)}\n{text}")
    for cell in mended[:_DESCRIBED]:
        entry = _entry(expectations, cell)
        say(f"{cell.nodeid} passes, and {entry.place} expects that it does not" if entry is not None else "")
    if surprises:
        say(f"{len(surprises)} of {len(cells)} cells are not as expected")
    problems = list(bundle.problems)
    if bundle.unfinished:
        problems.append(f"the bundle has {len(bundle.checks)} checks, and is incomplete: {bundle.unfinished}")
    for problem in problems[:_NAMED]:
        say(f"problem: {problem}")
    if len(problems) > _NAMED:
        say(f"… and {len(problems) - _NAMED} more")
    return 1 if surprises or problems or not cells else 0


@contextmanager
def _workers(
    options: argparse.Namespace, console: Console
) -> Iterator[tuple[Workers, Sequence[SelectedEngine], PlatformLine]]:
    """Yield the workers of this machine or of a cluster, with their engines and platform."""
    if options.dask is None:
        engines = engines_of(options, console)
        with local_workers(options.jobs) as processes:
            yield processes, engines, this_platform()
        return
    with dask_workers(options, lambda words: console.print(as_text(words), soft_wrap=True)) as cluster:
        limit_memory(cluster.memory if options.memory is None else options.memory)
        yield cluster, cluster.engines, cluster.platform


def _units(options: argparse.Namespace, plan: Plan, journal: Journal) -> Iterator[Unit]:
    """Yield the cases with the cells that are still to be judged."""
    folder = str(options.bundle.absolute())
    for case, cells in plan.cases.items():
        left = [
            UnitCell(planned_cell.cell.nodeid, planned_cell.cell.engine.to_dict(), list(planned_cell.checks))
            for planned_cell in cells
            if planned_cell.cell.nodeid not in journal
        ]
        if left:
            yield Unit(case, left, folder, options.timeout, memory_limit())


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Yield a list that has an item once Ctrl-C was pressed; pressed again it ends the program immediately."""
    signals: list[int] = []

    def note(number: int, frame: Any) -> None:
        signals.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:  # as under nohup
        yield signals
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield signals
    finally:
        signal.signal(signal.SIGINT, before)


def _exported_by(platform: str, cell: CellLine) -> CellLine:
    """Return the cell with the platform of its export, if it was judged on another."""
    return cell if cell.platform == platform else msgspec.structs.replace(cell, exported=platform)


def _with_expectation(cell: CellLine, expectations: Expectations) -> CellLine:
    """Return the cell with the reason why its failure is expected, if it is."""
    entry = _entry(expectations, cell)
    if entry is None or not entry.holds(cell):
        return cell
    return msgspec.structs.replace(cell, expected=f"{entry.why} [{entry.place}]")


def _entry(expectations: Expectations, cell: CellLine) -> Expectation | None:
    return expectations.find(cell.case, cell.qualified_target, cell.version, cell.label)


def _shard(text: str) -> Shard:
    try:
        return Shard.parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not I/N with 1 <= I <= N, as 2/4") from None


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer from 1 on")
    return count
