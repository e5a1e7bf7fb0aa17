"""The reduction of one failing archive: the choice of engine, oracle and sample, and a folder with the result."""

from __future__ import annotations

import io
import shlex
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
from packaging.version import Version

from t2n_core.engine.khronos.engine import KhronosEngine
from t2n_core.engine.paths import on_path
from t2n_core.engine.pool import engine_for
from t2n_core.engine.protocol import Engine
from t2n_core.engine.provision.resolved import CPU, ResolvedEngine
from t2n_core.errors import InputError, SecondCallError
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.nnef.reading.binding import Signatures
from t2n_core.nnef.reading.file_kind import is_onnx
from t2n_core.nnef.reading.graph_file import GRAPH_FILE
from t2n_core.nnef.reading.origins import ORIGINS_FILE, write_origins
from t2n_core.parity.check import check_parity
from t2n_core.parity.further_runs.rows import ROWS
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.reduce.failure import failure_of
from t2n_core.reduce.judge import AdaptiveEngine, Judge, SecondCalls
from t2n_core.reduce.oracles import DefinitionsOracle, Float64Oracle, OnnxOracle, Oracle, ReleaseOracle
from t2n_core.reduce.program import ONNX_FILE, Array, Program
from t2n_core.reduce.reducer import Reduced, reduce_program
from t2n_core.releases.judges import Releases, archive_judge
from t2n_core.releases.search import ReleaseReport, search_right
from t2n_core.scratch import home_in_memory

IO_FILE: Final = "io.npz"
SECONDS: Final = 60.0
"""Default time for one reduction."""
FLOAT64: Final = "float64"
_ROOM: Final = 4 * 8
"""Bytes per element of a weight: for candidates and the oracle, each also while written, at most 8 bytes."""
_LEAST_ROOM: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class FailingCase:
    """A check that fails in an engine."""

    request: CheckRequest
    engine: ResolvedEngine | None
    """None for the Khronos tools."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Name of a value -> its origin in PyTorch."""

    @property
    def signatures(self) -> Signatures:
        """Return the signatures of the engine's version."""
        return Signatures.of("khronos") if self.engine is None else Signatures.of("tract", self.engine.version)


@dataclass(frozen=True, slots=True, eq=False)
class ReducedCase:
    """A reduced case in its folder: an archive as a directory or an ONNX model, with inputs and right outputs."""

    folder: Path
    reduced: Reduced
    oracle: str
    """The oracle's name; empty if none can run the case."""
    expected: Mapping[str, Array]
    report: ReleaseReport | None
    """The releases in which the whole case was tried."""
    command: str = ""
    """The command that shows the failure; empty for an archive."""

    def describe(self) -> str:
        """Return the result as text for a terminal."""
        program, result = self.reduced.program, self.reduced
        blamed = f", of `{result.blamed}`" if result.blamed else ""
        sizes = f"{_count(program.operators, 'operator')}, {_count(program.elements, 'element')}"
        cost = f"{result.runs} runs, oracle {self.oracle or 'none'}"
        lines = [f"{result.failure}{blamed}: {sizes}, {cost}", f"in {self.folder}"]
        lines += [f"see it: {self.command}"] if self.command else []
        if not result.complete:
            lines.append("the time was used up: reduce this folder to continue")
        return "\n".join([*lines, program.text().rstrip()])


def read_program(path: Path, inputs: Sequence[Array], signatures: Signatures) -> Program:
    """Return an archive or an ONNX model with its inputs as a program. Raises InputError if they do not fit."""
    if is_onnx(path):
        from t2n_core.reduce.onnx_program import OnnxProgram

        return OnnxProgram.of_file(path, inputs, signatures)
    return Program.of(read_archive(path), inputs, signatures)


def reduce_case(
    case: FailingCase,
    output: Path,
    releases: Releases,
    *,
    oracle: str = "",
    seconds: float = SECONDS,
    timeout: float = 10.0,
    progress: Callable[[str, Program], None] = lambda name, program: None,
) -> ReducedCase:
    """Reduce a failing case, and write it into the folder `output` as it gets smaller.

    `oracle` is a release of tract, `definitions` or `float64`; by default, the release nearest to the engine's that is
    right, or the definitions of the operators, or the Khronos interpreter in float64. Of an ONNX model it is the
    reference by default. `seconds` is the time for the reduction, at most half of it for the search of that release;
    `timeout` is that for one run. Raises InputError if the case does not fail, or `output` has other files.
    """
    started = time.monotonic()
    _check_folder(output)
    if case.engine is None and is_onnx(case.request.archive):
        raise InputError("the tools of Khronos read no ONNX files", hint="name a release of tract with --engine")
    first = case.request.samples[0]
    program = read_program(case.request.archive, first.inputs, case.signatures)
    home = home_in_memory(_LEAST_ROOM + _ROOM * sum(weight.size for weight in program.weights.values()))
    with _engine(case.engine) as engine, tempfile.TemporaryDirectory(dir=home) as memory:
        sample, outcome = _failing_sample(case, engine, timeout)
        if sample is not first:
            program = read_program(case.request.archive, sample.inputs, case.signatures)
        report: ReleaseReport | None = None
        right: Oracle | None = ReleaseOracle(engine, Path(memory), timeout)
        if isinstance(engine, AdaptiveEngine) and _is_second_call(outcome):
            engine = SecondCalls(engine)  # a first call in a new State gives the right values
        else:
            engine = on_path(engine, outcome.path, [sample.sizes])
            report, right = _oracle(case, sample, releases, oracle, program, Path(memory), timeout, seconds / 2)
        left = max(seconds / 2, seconds - (time.monotonic() - started))
        judge = Judge(engine, right, Path(memory), timeout=timeout, seconds=left)
        if is_onnx(case.request.archive):
            _require_same_failure(judge, case.request.archive, sample, program, timeout)

        def keep(name: str, smaller: Program) -> None:
            _write(output, smaller, {}, case.origins)
            progress(name, smaller)

        reduced = reduce_program(program, judge, progress=keep)
        values = judge.oracle.values(reduced.program, reduced.program.outputs) if judge.oracle is not None else None
        expected = {name: _narrow(array) for name, array in (values or {}).items()}
        _write(output, reduced.program, expected, case.origins)
        name = judge.oracle.name if judge.oracle is not None else ""
        return ReducedCase(output, reduced, name, expected, report, _command(case, output))


def _require_same_failure(judge: Judge, model: Path, sample: Sample, program: Program, timeout: float) -> None:
    """Raise InputError if a program does not end in the engine as the ONNX model does from which it was read."""
    replies = judge.engine.run(model, [sample.inputs], timeout=timeout), judge.run(program)
    original, parts = (None if reply.status == "ok" else failure_of(reply) for reply in replies)
    if original != parts:
        raise InputError(f"{model} is not reduced: as a whole it ends with {original}, and written anew with {parts}")


def _command(case: FailingCase, folder: Path) -> str:
    """Return the command that shows the failure of an ONNX model in a release; empty for another case."""
    if not (folder / ONNX_FILE).exists() or case.engine is None:
        return ""
    inputs = folder / IO_FILE
    return shlex.join(
        ["t2n", "check", f"{folder / ONNX_FILE}", "--inputs", f"{inputs}", "--tract", case.engine.version]
    )


@contextmanager
def _engine(resolved: ResolvedEngine | None) -> Iterator[Engine]:
    if resolved is None:
        yield KhronosEngine.shared()
    elif resolved.kind == "cli" or resolved.runtime != CPU:
        yield engine_for(resolved)
    else:
        engine = AdaptiveEngine(resolved)
        try:
            yield engine
        finally:
            engine.close()


def _is_second_call(outcome: Outcome) -> bool:
    return outcome.error is not None and outcome.error.error_class == SecondCallError.__name__


def _failing_sample(case: FailingCase, engine: Engine, timeout: float) -> tuple[Sample, Outcome]:
    """Return the first sample that fails, and its outcome. Raises InputError if none does."""
    request = replace(case.request, timeout=timeout)
    for sample in request.samples:
        outcome = check_parity(engine, replace(request, samples=[sample]))
        if not outcome.passed and outcome.error is not None:
            return sample, outcome
    together = check_parity(engine, request)
    if ROWS in together.facts:
        raise InputError("rows of a batch depend on each other: that needs two runs, and is not reduced")
    raise InputError(f"it does not fail in {engine.name} {engine.version}")


def _oracle(
    case: FailingCase,
    sample: Sample,
    releases: Releases,
    oracle_name: str,
    program: Program,
    memory: Path,
    timeout: float,
    seconds: float,
) -> tuple[ReleaseReport | None, Oracle | None]:
    """Return the requested oracle, or the best one, with the report of the search for it within `seconds`."""
    report = None
    if is_onnx(case.request.archive) and oracle_name in ("", DefinitionsOracle.name, FLOAT64):
        if oracle_name:
            raise InputError(
                f"--oracle {oracle_name} is for archives", hint="an ONNX model has onnxruntime, or name a release"
            )
        return None, OnnxOracle(case.request.reference, memory, timeout)
    if not oracle_name:
        tried = archive_judge(releases, replace(case.request, samples=[sample], timeout=timeout))
        near = max(releases.all) if case.engine is None and releases.all else _version(case.engine)
        right = None
        if near is not None:
            report = search_right(releases.all, tried, near, cached=releases.cached, seconds=seconds)
            right = report.nearest_right(near)
        oracle_name = str(right) if right is not None else _without_release(case, program, timeout)
    if oracle_name == DefinitionsOracle.name:
        return report, DefinitionsOracle(timeout)
    if oracle_name == FLOAT64:
        return report, Float64Oracle(KhronosEngine.shared().interpreter, memory, timeout)
    return report, ReleaseOracle(engine_for(releases.resolved(Version(oracle_name))), memory, timeout)


def _without_release(case: FailingCase, program: Program, timeout: float) -> str:
    """Return the oracle to use if no release is right: the definitions, if they can compute the program."""
    if case.engine is None or DefinitionsOracle(timeout).values(program, program.outputs) is None:
        return FLOAT64
    return DefinitionsOracle.name


def _version(engine: ResolvedEngine | None) -> Version | None:
    return None if engine is None else Version(engine.version)


def _narrow(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _check_folder(folder: Path) -> None:
    """Raise InputError for a folder with other files than a reduced case."""
    if folder.exists() and (not folder.is_dir() or any(not _is_ours(file) for file in folder.iterdir())):
        raise InputError(f"{folder} has other files", hint="name a folder that does not exist")


def _is_ours(file: Path) -> bool:
    return file.name in (GRAPH_FILE, ONNX_FILE, IO_FILE, ORIGINS_FILE) or file.suffix == ".dat"


def _write(folder: Path, program: Program, expected: Mapping[str, Array], origins: Mapping[str, str]) -> None:
    draft = folder.with_name(f"{folder.name}.draft")
    program.write(draft)
    (draft / IO_FILE).write_bytes(npz_bytes({**program.inputs, **expected}))
    write_origins(draft, {name: origins[name] for name in program.results() if name in origins})
    shutil.rmtree(folder, ignore_errors=True)
    draft.replace(folder)


def npz_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Return an .npz file with reproducible bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as packed:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asanyarray(array), version=(1, 0), allow_pickle=False)
            packed.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return stream.getvalue()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"
