"""Exports a model for each engine and compares what the archives compute with PyTorch, at many sizes."""

from __future__ import annotations

import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from conformance.lab.fuzz.program import SCRIPT, TRACE, Program, Sizes
from conformance.lab.fuzz.sizes import judged_sizes
from conformance.lab.fuzz.verdict import (
    CRASH,
    ENGINE_ERROR,
    EXCEPTION,
    FROZEN,
    HANG,
    NO_SIZE,
    OUTSIDE,
    REFUSED,
    RIGHT,
    STATUSES,
    TIMEOUT,
    UNGUARDED,
    WRONG,
    Verdict,
    cause_of,
)
from t2n_core.engine import engine_for
from t2n_core.engine.paths import EnginePath, OnPath, is_required, paths_of
from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.errors import FrozenDecisionWarning, T2NError, UnsupportedOpsError
from t2n_core.export.model import ModelExport
from t2n_core.export.result import ExportResult
from t2n_core.inference_target import TractNNEF
from t2n_core.parity.comparison import OutputComparison, compare_outputs
from t2n_core.parity.sizes import PROCESSES, KeepsGoing

EXPORT_SECONDS = 30.0
ENGINE_SECONDS = 8.0
_MOST_ELEMENTS = 1_000_000
_LARGEST_NUMBER = 1e3
_NOISY_RUNS = 4
_ROUNDING = 8.0
"""How many times farther from the values in float64 an engine may be than the noisy runs are."""
_FROZEN = (WRONG, UNGUARDED, ENGINE_ERROR, CRASH)
"""Outcomes allowed for a trace at other sizes if it has warned about a frozen decision."""
STATUS_OF_REPLY = {"error": ENGINE_ERROR, "crash": CRASH, "oom": CRASH, "timeout": TIMEOUT}


class TooLongError(Exception):
    """Export did not end."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What PyTorch computes at one assignment of sizes."""

    sizes: Sizes
    inputs: dict[str, Tensor]
    expected: tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What an engine did at one assignment of sizes."""

    sizes: Sizes
    status: str
    message: str = ""


def references(program: Program, sizes: Sequence[Sizes] | None = None) -> list[Reference]:
    """At the sizes where the model runs and all of its values, intermediate ones too, are finite and of some order."""
    inner, model = program.with_all_values().model(), program.model()
    right = []
    for symbol_sizes in judged_sizes(program) if sizes is None else sizes:
        arguments = program.arguments(symbol_sizes)
        try:
            if not all(map(_is_usual, _outputs(inner, arguments))):
                continue
            outputs = _outputs(model, arguments)
        except Exception:  # the model has no numbers at this size
            continue
        right.append(Reference(symbol_sizes, arguments, tuple(o.contiguous().numpy() for o in outputs)))
    return right


def _outputs(model: torch.nn.Module, arguments: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = model(**{name: value.clone() for name, value in arguments.items()})
    return result if isinstance(result, tuple) else (result,)


def _is_usual(value: Tensor) -> bool:
    if value.numel() > _MOST_ELEMENTS:
        return False
    return not value.is_floating_point() or not value.numel() or bool(value.abs().amax() <= _LARGEST_NUMBER)


def judge(program: Program, targets: Sequence[TractNNEF], sizes: Sequence[Sizes] | None = None) -> list[Verdict]:
    """Return one verdict per target. The model is captured once."""
    right = references(program, sizes)
    if not right or right[0].sizes != dict(program.example):
        return [
            Verdict(str(target), NO_SIZE, "PyTorch's values are not finite, or out of scale, at the example's sizes")
            for target in targets
        ]
    try:
        export = _export_of(program)
    except NotCapturableError as error:
        return [Verdict(str(target), NO_SIZE, str(error)) for target in targets]
    with warnings.catch_warnings(record=True) as warned:  # of the capture, which all targets share
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", FrozenDecisionWarning)
        return [judge_one(program, export, target, right, warned) for target in targets]


class NotCapturableError(Exception):
    """TorchScript's compiler does not take the model."""


def _export_of(program: Program) -> ModelExport:
    """Return the model as its way of capture takes it. Raises NotCapturableError."""
    model: torch.nn.Module = program.model()
    arguments = program.example_arguments()
    if program.way == SCRIPT:
        try:
            model = torch.jit.script(model)
            model(**arguments)
        except Exception as cause:
            raise NotCapturableError(f"torch.jit.script: {cause}") from cause
    way = TRACE if program.way == TRACE else "export"
    return ModelExport(model, arguments, dynamic_axes=program.axes, capture=way)


def judge_one(
    program: Program,
    export: ModelExport,
    target: TractNNEF,
    references: Sequence[Reference],
    warned: Sequence[warnings.WarningMessage],
) -> Verdict:
    """Exports for one target and runs its engine; `warned` grows with the warnings of all exports of the model."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="t2n-fuzz-") as folder:
        try:
            with time_limit(EXPORT_SECONDS):
                result = export.to(target, Path(folder, "m.tar"))
        except TooLongError:
            return Verdict(
                str(target), HANG, "export takes too long", "export takes too long", (dict(program.example),)
            )
        except T2NError as error:
            first = error.problems[0] if isinstance(error, UnsupportedOpsError) else error
            text = f"{type(first).__name__}: {first.message}"
            return Verdict(str(target), REFUSED, str(error), cause_of(text), seconds=time.monotonic() - start)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            return Verdict(str(target), EXCEPTION, f"{text}\n{place_of(error)}", cause_of(f"{text} {place_of(error)}"))
        holds = result.range.holds
        answers = [
            answer for path in checked_paths(target) for answer in run_on_path(program, result, path, references)
        ]
        findings = [answer if holds(answer.sizes) else outside(answer) for answer in answers]
        if any(issubclass(warning.category, FrozenDecisionWarning) for warning in warned):
            findings = [
                replace(finding, status=FROZEN) if finding.status in _FROZEN else finding for finding in findings
            ]
    return summed_up(str(target), findings, time.monotonic() - start)


def checked_paths(target: TractNNEF) -> list[EnginePath]:
    """Return the paths of an engine on which an archive has to be right."""
    return [path for path in paths_of(target.resolved) if is_required(path, target.resolved.version)]


def run_on_path(
    program: Program, result: ExportResult, path: EnginePath, references: Sequence[Reference]
) -> list[Finding]:
    """Return what the engine does on one of its paths: at every size, or at one of the range where sizes are fixed."""
    engine = engine_for(result.target.resolved)
    if path is EnginePath.DECLUTTER:
        return run_all(program, result, engine, references)
    symbols: Sizes = {}
    if path is EnginePath.FIXED_SYMBOLS:
        references = [
            *(reference for reference in references[1:] if result.range.holds(reference.sizes)),
            references[0],
        ][:1]
        symbols = {name: size for name, size in references[0].sizes.items() if name in result.samples[0].sizes}
    findings = run_all(program, result, OnPath(engine, path, symbols), references)
    return [
        replace(finding, message=f"{finding.message} on the path {path}") if finding.message else finding
        for finding in findings
    ]


def run_all(
    program: Program, result: ExportResult, engine: KeepsGoing, references: Sequence[Reference]
) -> list[Finding]:
    """Return what the engine does at every size; where its process ends at one, the others run in a further one."""
    names = result.input_names
    findings: list[Finding] = []
    rest = list(references)
    for _ in range(PROCESSES):
        batches = [[reference.inputs[name].numpy() for name in names] for reference in rest]
        reply = engine.run(result.archive, batches, timeout=ENGINE_SECONDS, keep_going=True)
        for index, (reference, outputs) in enumerate(zip(rest, reply.outputs, strict=False)):
            if index in reply.refused:
                findings.append(Finding(reference.sizes, ENGINE_ERROR, reply.refused[index]))
            else:
                findings.append(finding_of_outputs(program, reference, outputs))
        rest = rest[len(reply.outputs) :]
        if not rest:
            break
        findings.append(_failure(rest[0], reply))
        rest = rest[1:]
        if reply.stage != "run" or not rest:  # the archive does not load, at whatever size
            break
    return findings


def _failure(reference: Reference, reply: EngineReply) -> Finding:
    return Finding(reference.sizes, STATUS_OF_REPLY[reply.status], f"at stage {reply.stage}: {reply.message}")


def finding_of_outputs(program: Program, reference: Reference, outputs: Sequence[Array]) -> Finding:
    comparisons = compare_outputs(reference.expected, outputs, names=program.outputs)
    bad = [comparison for comparison in comparisons if not comparison.passed]
    if not bad or (not any(comparison.problem for comparison in bad) and _is_rounding(program, reference, outputs)):
        return Finding(reference.sizes, RIGHT)
    return Finding(reference.sizes, WRONG, "; ".join(map(_difference, bad)))


def _difference(comparison: OutputComparison) -> str:
    if comparison.problem:
        return f"{comparison.name}: {comparison.problem}"
    index = list(comparison.worst_index or ())
    return f"{comparison.name}{index}: {comparison.worst_actual} in place of {comparison.worst_expected}"


def _is_rounding(program: Program, reference: Reference, outputs: Sequence[Array]) -> bool:
    """Return whether the engine is as near to PyTorch in float64 as PyTorch with a little noise in each step."""
    wide = {name: value.double() for name, value in reference.inputs.items()}
    try:
        exact = [o.double().numpy() for o in _outputs(program.model().double(), wide)]
        noisy = program.with_noise().model().double()
        others = [[o.double().numpy() for o in _outputs(noisy, wide)] for _ in range(_NOISY_RUNS)]
    except Exception:  # a model with a fixed dtype inside
        return False
    for index, (truth, theirs) in enumerate(zip(exact, outputs, strict=True)):
        if truth.shape != theirs.shape or any(other[index].shape != truth.shape for other in others):
            return False
        spread = max(float(np.abs(other[index] - truth).max(initial=0.0)) for other in others)
        if not float(np.abs(truth - theirs).max(initial=0.0)) <= _ROUNDING * spread + 1e-6:
            return False
    return True


def outside(finding: Finding) -> Finding:
    """Return the finding as one outside of the archive's range, where an error of the engine is right."""
    status = {ENGINE_ERROR: OUTSIDE, WRONG: UNGUARDED}.get(finding.status, finding.status)
    return Finding(finding.sizes, status, finding.message)


def summed_up(engine: str, findings: Sequence[Finding], seconds: float) -> Verdict:
    """Return the verdict of all findings: the worst of them, with how often each was met."""
    counts = Counter(finding.status for finding in findings)
    worst = min(counts, key=STATUSES.index, default=NO_SIZE)
    if worst in (RIGHT, OUTSIDE):
        return Verdict(engine, worst, counts=counts, seconds=seconds)
    failing = [finding for finding in findings if finding.status == worst]
    message = failing[0].message if failing else ""
    cause = "other values" if worst in (WRONG, UNGUARDED) and "shape" not in message else cause_of(message)
    return Verdict(engine, worst, message, cause, tuple(finding.sizes for finding in failing), counts, seconds)


def place_of(error: BaseException) -> str:
    """Return where in the product an error was raised; an empty text for one from elsewhere."""
    steps = [f for f in traceback.extract_tb(error.__traceback__) if "t2n_core" in f.filename]
    return f"{Path(steps[-1].filename).name} in {steps[-1].name}" if steps else ""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TooLongError in the block when it takes longer; only in a main thread, and where signals are."""

    def ring(*_: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
