"""The unit of work of a run: a case with all its engines. Units and results are sent between processes as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_t2n.config.engines import runner_of
from pytest_t2n.records.cell import Cell, SelectedEngine
from pytest_t2n.records.file import encode
from pytest_t2n.records.from_report import DTYPE_PROPERTY, OP_PROPERTY, with_relative_paths, with_subject
from pytest_t2n.records.schema import CellLine
from pytest_t2n.run.bundle_reader import archive_of, read_samples
from pytest_t2n.run.bundles import CheckEntry
from pytest_t2n.run.export_summary import ExportSummary, clipped_graph
from t2n_core.engine.processes.memory import limit_memory
from t2n_core.nnef.reading.file_kind import is_onnx

if TYPE_CHECKING:
    from t2n_core.engine.protocol import Engine
    from t2n_core.parity.outcome import Outcome
    from t2n_core.parity.request import CheckRequest

_LONGEST = 20_000
"""Most characters of the description of a failure in a result."""


class UnitCell(msgspec.Struct, frozen=True):
    """A cell with the checks that judge it."""

    nodeid: str
    engine: dict[str, Any]
    """The engine, as `SelectedEngine.to_dict` returns it."""
    checks: list[CheckEntry]


class Unit(msgspec.Struct, frozen=True):
    """A case with its cells."""

    case: str
    cells: list[UnitCell]
    bundle: str
    """Folder of the bundle."""
    timeout: float
    """Seconds for one check in an engine."""
    memory: int
    """Bytes for one check in an engine."""

    @property
    def files(self) -> set[str]:
        """Return the names of the archives and samples of all its checks."""
        return {name for cell in self.cells for check in cell.checks for name in (check.archive, check.samples)}


class JudgedCell(msgspec.Struct, frozen=True):
    """The record of a cell."""

    record: bytes
    """The line of `matrix.jsonl`."""
    graph: bytes
    """The line of its graph; empty without one."""
    text: str
    """Description of a failure; empty for a pass."""


class JudgedUnit(msgspec.Struct, frozen=True):
    """The records of a unit, in the order of its cells."""

    cells: list[JudgedCell]
    host: str = ""
    """Name of the machine that judged it; empty for this one."""


def pack_unit(unit: Unit) -> bytes:
    """Return an encoded unit."""
    return msgspec.msgpack.encode(unit)


def judge(data: bytes) -> bytes:
    """Judge a unit, and return the results; both are in msgpack."""
    unit = msgspec.msgpack.decode(data, type=Unit)
    limit_memory(unit.memory)
    return msgspec.msgpack.encode(JudgedUnit([_judge_cell(unit, cell) for cell in unit.cells]))


def _judge_cell(unit: Unit, planned: UnitCell) -> JudgedCell:
    """Return the record of a cell after all its checks; the graph and the description are of the decisive one."""
    from pytest_t2n.records.from_outcome import outcome_record
    from pytest_t2n.run.calls.verdicts import decisive

    bundle, checks = Path(unit.bundle), planned.checks
    cell = Cell(planned.nodeid, unit.case, SelectedEngine.from_dict(planned.engine))
    outcomes = [_check(bundle, cell.engine, check, unit.timeout) for check in checks]
    outcome = decisive(outcomes)
    assert outcome is not None
    deciding = checks[outcomes.index(outcome)]
    if deciding.version != cell.engine.version and not deciding.reference:
        outcome = replace(outcome, facts={**outcome.facts, "exported_for": deciding.version})
        if outcome.error is not None and not outcome.error.hint:
            hint = f"the archive was exported for {deciding.target} {deciding.version}"
            outcome = replace(outcome, error=replace(outcome.error, hint=hint))
    graph = ExportSummary(graph=_graph_of(bundle, deciding)).graph_line
    record = _with_subject(outcome_record(cell, outcome), deciding, checks, graph.key if graph is not None else "")
    text = "" if record.status == "pass" else outcome.describe()[:_LONGEST]
    return JudgedCell(
        encode(with_relative_paths(record, bundle)).encode(),
        encode(graph).encode() if graph is not None else b"",
        text.replace(f"{bundle}/", ""),
    )


def _with_subject(record: CellLine, deciding: CheckEntry, checks: Sequence[CheckEntry], graph: str) -> CellLine:
    """Return the record with the export's facts and, as in a session, the operators of all checks."""
    subject = deciding.subject
    ops = dict.fromkeys(op for check in checks for op in check.subject.ops)
    dtype = subject.dtype or next((check.subject.dtype for check in checks if check.subject.dtype), "")
    properties = {OP_PROPERTY: subject.op, DTYPE_PROPERTY: dtype}
    return with_subject(record, properties, ops=list(ops), dtype=dtype, graph=graph, notes=subject.notes)


def _graph_of(bundle: Path, check: CheckEntry) -> str:
    try:
        return clipped_graph(archive_of(bundle, check.archive))
    except Exception:
        return ""  # the outcome reports the problem of the archive


def _check(bundle: Path, engine: SelectedEngine, check: CheckEntry, timeout: float) -> Outcome:
    """Return the outcome of one check, also for damaged files."""
    from t2n_core.check.file import check_file, open_checked
    from t2n_core.engine.paths import on_path
    from t2n_core.parity.check import check_parity
    from t2n_core.parity.outcome import Outcome
    from t2n_core.parity.request import PYTORCH, CheckRequest
    from t2n_core.parity.samples import DRAWN

    try:
        archive = archive_of(bundle, check.archive)
        samples, outside = read_samples(bundle, check)
        names, criteria, constant = check.output_names, check.criteria, check.constant_outputs
        request = CheckRequest(
            archive,
            samples,
            names,
            criteria,
            timeout,
            check.held,
            outside,
            constant,
            carries=check.carries,
            reference=check.reference or PYTORCH,
            interface=check.interface,
        )
        runner = runner_of(engine)
        if check.reference:
            outcome = check_file(open_checked(archive, {}), runner, engine.target, request)
        elif (outcome := check_parity(runner, request)).status.value == "mismatch":
            outcome = _with_author(outcome, on_path(runner, outcome.path, outcome.failed_sizes), request)
        if check.drawn:
            outcome = replace(outcome, facts={**outcome.facts, DRAWN: check.drawn})
    except Exception as exc:
        outcome = Outcome.from_error(exc, "load")
    return replace(_without_metrics(outcome, check), engine=engine.title)


def _with_author(mismatch: Outcome, engine: Engine, request: CheckRequest) -> Outcome:
    """Return a mismatch with its author; without one where a package of an extra that finds it is not installed."""
    packages = ("onnx", "onnxruntime") if is_onnx(request.archive) else ("sympy",)
    if any(find_spec(package) is None for package in packages):
        return mismatch
    from t2n_core.check.file import open_checked

    return open_checked(request.archive, {}).with_author(mismatch, engine, request)


def _without_metrics(outcome: Outcome, check: CheckEntry) -> Outcome:
    """Return the outcome; a pass becomes weak if metrics should have judged, because bundles do not contain them.

    So does the pass of a check without any criterion, which no session writes.
    """
    if (check.elementwise and not check.metrics) or outcome.status.value != "pass":
        return outcome
    from t2n_core.parity.outcome import ErrorInfo, Stage, Status

    message = f"the metrics {', '.join(check.metrics)} are functions of the test, which bundles do not contain"
    if not check.metrics:
        message = "the manifest disables the comparison of elements (`elementwise`), and names no metric instead"
    error = ErrorInfo.of(Stage.COMPARE, "WeakCheck", message, hint="run the test itself")
    return replace(outcome, status=Status.WEAK, error=error)
