"""The outcome of an engine's reply: a failure, or the comparison of its outputs with the expected ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from t2n_core.engine.causes import deepest_first
from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.parity.comparison import OutputComparison, compare_outputs
from t2n_core.parity.judging.metrics import MetricResult, indifferences, measure
from t2n_core.parity.outcome import ErrorInfo, Outcome, Stage, Status, error_name
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import SIGNED, Sample
from t2n_core.parity.sensitivity import sensitivities
from t2n_core.parity.table import sizes_text
from t2n_core.parity.tolerance import LEVELS, TractCheckTolerance

_REPLY_STATUS: Mapping[str, Status] = {
    "error": Status.ERROR,
    "crash": Status.CRASH,
    "timeout": Status.TIMEOUT,
    "oom": Status.OOM,
}
_STDERR_KEPT = 4000
_TIMEOUT_HINT = "give it more time: --timeout of `t2n`, or of a test --t2n-timeout or timeout="
_LOAD_HINT = f"`t2n bisect-releases` names the releases that load it; or {_TIMEOUT_HINT}"
_FREE_SIZES_HINT = (
    "a pass of the engine may take time that grows exponentially with the expressions of the free sizes {names}: "
    "give fewer axes a free size"
)
_VALUE_HINT = (
    "the example passes and other inputs of its sizes do not: a value was probably baked in during capture, or the "
    "model has no meaning for what was drawn, and inputs= gives it others"
)
_SIGN_HINT = (
    "only inputs with a sign that the example's never have fail: where the model has no meaning for them, give it "
    "others with inputs="
)
_FAR = 8
"""Factor by which a size that only a long sample has exceeds all others."""
WEAK_CHECK = "WeakCheck"
"""Class of the error of a weak outcome."""
_WEAK_HINT = "give inputs with which the outputs change, weights of realistic spread, or a tighter tolerance"


def failure_outcome(
    reply: EngineReply, samples: Sequence[Sample], common: Mapping[str, Any], timeout: float | None = None
) -> Outcome:
    """Return the outcome of an engine that did not answer all samples; `common` are further fields.

    `timeout` is its time limit in seconds.
    """
    status, stage = _REPLY_STATUS[reply.status], Stage(reply.stage)
    message = deepest_first(reply.message) or f"the engine gave no message ({reply.status} at stage {stage.value})"
    failed_sizes: tuple[Mapping[str, int], ...] = ()
    hint = ""
    if stage is Stage.RUN and len(reply.outputs) < len(samples):
        at = samples[len(reply.outputs)]
        failed_sizes = (at.sizes,)
        if at.sizes and reply.outputs:
            ran = sizes_text([sample.sizes for sample in samples[: len(reply.outputs)]])
            hint = f"it ran at {ran}, and failed at the next"
    if status is Status.TIMEOUT and timeout is not None:
        message = f"{message} ({timeout:g} seconds)"
        free = sorted({name for sample in samples for name in sample.sizes})
        loads = stage in (Stage.LOAD, Stage.OPTIMISE)
        of_sizes = _FREE_SIZES_HINT.format(names=", ".join(free)) if loads and free else ""
        hint = "; ".join(filter(None, [hint, of_sizes, _LOAD_HINT if loads else _TIMEOUT_HINT]))
    info = ErrorInfo.of(
        stage, error_name(status, stage), message, hint=hint, details=_stderr_tail(reply.stderr, message)
    )
    return Outcome(status, stage, error=info, failed_sizes=failed_sizes, **common)


def comparison_outcome(reply: EngineReply, request: CheckRequest, common: Mapping[str, Any]) -> Outcome:
    """Return the outcome of an engine that answered each sample, by its outputs; `common` are further fields."""
    samples, names, criteria = request.samples, request.output_names, request.criteria
    sensitivity, indifferent = request.sensitivity, request.indifferent
    if sensitivity is None:
        sensitivity = sensitivities(samples, names, criteria, request.constant_outputs)
    if indifferent is None:
        indifferent = indifferences(criteria.metrics, samples)
    worst: list[OutputComparison] = []
    differing: list[Sample] = []
    answers: list[Sequence[Array]] = []
    for sample, got in zip(samples, reply.outputs, strict=True):
        if reply.widened:
            got = (
                tuple(_narrow(*pair) for pair in zip(sample.expected, got, strict=False)) + got[len(sample.expected) :]
            )
        answers.append(got)
        compared = compare_outputs(sample.expected, got, names=names, criteria=criteria)
        if not all(output.passed for output in compared):
            differing.append(sample)
        for index, output in enumerate(compared):
            if index >= len(worst):
                worst.append(output)
            elif _badness(output) > _badness(worst[index]):
                worst[index] = output
    levels = [output.level for output in worst]
    level = None if None in levels else max((level for level in levels if level), default=LEVELS[0])
    metrics: tuple[MetricResult, ...] = ()
    if criteria.metrics and not any(output.problem for output in worst):
        try:
            metrics = measure(criteria.metrics, samples, answers, indifferent, request.metric_reference)
        except Exception as exc:
            return Outcome.from_error(exc, Stage.COMPARE, level=level, outputs=tuple(worst), **common)
    common = {**common, "metrics": metrics}
    if not differing:
        pairs = zip(worst, sensitivity, strict=True)
        outputs = tuple(
            replace(output, moves=by.largest, moving=by.share, weak=by.weak, not_finite=by.not_finite)
            for output, by in pairs
        )
        beyond = [metric for metric in metrics if not metric.passed]
        return _beyond(beyond, outputs, level, common) if beyond else _pass_outcome(outputs, metrics, level, common)
    bad = [output.name for output in worst if not output.passed]
    limits = dict.fromkeys(output.limit or output.required.value for output in worst if not output.passed)
    beyond_what = ", ".join(f"`{limit}`" for limit in limits)
    share = f"{len(bad)} of {len(worst)} outputs differ"
    message = f"{share} from {request.reference} beyond {beyond_what}: {', '.join(bad)}"
    hint = _hint(level, samples, differing)
    info = ErrorInfo.of(Stage.COMPARE, "ParityError", message, hint=hint)
    return Outcome(
        Status.MISMATCH,
        Stage.COMPARE,
        level=level,
        outputs=tuple(worst),
        failed_sizes=tuple(unique_sizes(sample.sizes for sample in differing)),
        error=info,
        **common,
    )


def _beyond(
    metrics: Sequence[MetricResult],
    outputs: tuple[OutputComparison, ...],
    level: TractCheckTolerance | None,
    common: Mapping[str, Any],
) -> Outcome:
    """Return the mismatch of metrics that are beyond their bounds; each names the sizes of its worst sample."""
    other_metrics = [metric for metric in common["metrics"] if not metric.required]
    message = "; ".join(map(str, [*metrics, *other_metrics]))
    error = ErrorInfo.of(Stage.COMPARE, "ParityError", message)
    return Outcome(Status.MISMATCH, Stage.COMPARE, level=level, outputs=outputs, error=error, **common)


def _pass_outcome(
    outputs: tuple[OutputComparison, ...],
    metrics: Sequence[MetricResult],
    level: TractCheckTolerance | None,
    common: Mapping[str, Any],
) -> Outcome:
    """Return a pass, or a weak pass with the reason as its error."""
    weak = [f"{output.name} {output.weak}" for output in outputs if output.weak]
    indifferent = [f"metric {metric.name} {metric.weak}" for metric in metrics if metric.weak]
    if not weak and not indifferent:
        return Outcome(Status.PASS, Stage.COMPARE, level=level, outputs=outputs, **common)
    head = f"{len(weak)} of {len(outputs)} outputs prove little" if weak else "it proves little"
    message = f"{head}: {'; '.join([*weak, *indifferent])}"
    error = ErrorInfo.of(Stage.COMPARE, WEAK_CHECK, message, hint=_WEAK_HINT)
    return Outcome(Status.WEAK, Stage.COMPARE, level=level, outputs=outputs, error=error, **common)


def unique_sizes(sizes: Iterable[Mapping[str, int]]) -> list[Mapping[str, int]]:
    """Return the assignments of sizes without repetitions, in order."""
    unique: list[Mapping[str, int]] = []
    for assignment in sizes:
        if assignment not in unique:
            unique.append(assignment)
    return unique


def _narrow(expected: Array, got: Array) -> Array:
    """Return float32 as float16, or int64 as the expected integer type, if that is exact; otherwise the same array."""
    floats = expected.dtype == np.float16 and got.dtype == np.float32
    integers = expected.dtype.kind in "iu" and got.dtype == np.int64
    if not floats and not integers:
        return got
    with np.errstate(over="ignore"):
        narrow = got.astype(expected.dtype)
    return narrow if np.array_equal(narrow.astype(got.dtype), got, equal_nan=floats) else got


def _badness(output: OutputComparison) -> tuple[bool, bool, int, float]:
    rank = len(LEVELS) if output.level is None else output.level.rank
    return (not output.passed, bool(output.problem), rank, output.max_abs)


def _hint(level: TractCheckTolerance | None, samples: Sequence[Sample], failed: Sequence[Sample]) -> str:
    traced = samples[0].sizes
    if samples[0] not in failed and any(sample.sizes == traced for sample in failed):
        is_signed = all(sample.label.endswith(SIGNED) for sample in failed)
        return _SIGN_HINT if is_signed and _has_one_sign(samples[0]) else _VALUE_HINT
    if grown := _larger_than_the_rest(samples, failed):
        return f"all smaller sizes pass: an error grows with {grown}; a maximum of the axis ends what is promised"
    if all(sample.sizes != traced for sample in failed):
        return "the traced size passes and others do not: a size was probably baked in during capture"
    if level is not None:
        return f"it holds at level `{level.value}`; pass tolerance={level.value!r} if that is close enough for you"
    return "no level holds: the graph computes something else, or the engine does"


def _has_one_sign(example: Sample) -> bool:
    floats = [array for array in example.inputs if array.dtype.kind == "f" and array.size]
    return any(bool((array >= 0).all() or (array <= 0).all()) for array in floats)


def _larger_than_the_rest(samples: Sequence[Sample], failed: Sequence[Sample]) -> str:
    """Return the symbols whose sizes are far larger in all failures than in all other samples; empty without any."""
    passed = [sample for sample in samples if sample not in failed]
    grown = (
        [
            name
            for name in samples[0].sizes
            if min(sample.sizes.get(name, 0) for sample in failed)
            > _FAR * max(sample.sizes.get(name, 0) for sample in passed)
        ]
        if passed
        else []
    )
    return ", ".join(grown)


def _stderr_tail(stderr: str, message: str) -> str:
    text = stderr.strip()
    if not text or text == message.strip():
        return ""
    return f"engine's stderr:\n{text[-_STDERR_KEPT:]}"
