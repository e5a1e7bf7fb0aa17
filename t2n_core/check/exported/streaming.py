"""Streaming: after its delay, the engine's pulsed model must agree with the model on the full sequence.

outcome = check_streaming(result, 8, Judgement.parse("close"))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from t2n_core.check.answered import Answered
from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.check.exported.stream_errors import with_reason
from t2n_core.engine.paths import EnginePath
from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.errors import InputError, ParityError, PiecesError
from t2n_core.nnef.sizes.dims import symbols_of
from t2n_core.parity.check import check_parity
from t2n_core.parity.comparison import compare_outputs
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.judging.metrics import indifferences
from t2n_core.parity.outcome import Outcome, Status
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.sensitivity import sensitivities

PULSES = 8
"""Fewest pulses in a run."""
MOST = 256
LONGER_PULSE = "longer_pulse"
"""Fact of the outcome: the length of the other pulse with which the stream returned the same."""
ENOUGH = 0.5
"""Share of each output that must be known at the end of the sequence."""
Run: TypeAlias = Callable[[Sequence[Array], int], EngineReply]
"""Runs whole inputs as a stream in pulses of this many steps; the reply's only batch is without delays."""


@dataclass(frozen=True, slots=True)
class StreamedAxis:
    """The engine of an archive, the symbol of its time axis, and the sizes that its other symbols keep."""

    engine: TractEngine
    symbol: str
    others: Mapping[str, int]


def check_streaming(
    result: ExportedArchive, pulse: int, criteria: Judgement, *, symbol: str | None = None, timeout: float = 60.0
) -> Outcome:
    """Run the archive as a stream, `pulse` steps at a time, and compare with PyTorch on the full sequence.

    It runs on each path of the engine: the model is decluttered, becomes a stream, and is decluttered again on the main
    one alone. `symbol` is the time axis, if the model has several dynamic ones and the export does not name it; the
    others keep their traced size. A node that the engine cannot stream is reported in the outcome, never as an
    exception; `timeout` is in seconds.

    Raises InputError for a model without such an axis, a pulse below 1, or a target that has no streams.
    """
    axis = streamed_axis(result, pulse, criteria, symbol)
    paths = [path for path in axis.engine.paths if path is not EnginePath.FIXED_SYMBOLS] or [EnginePath.DECLUTTER]
    for number, path in enumerate(paths, 1):

        def run(inputs: Sequence[Array], size: int, path: EnginePath = path) -> EngineReply:
            streamed, others = (axis.symbol, size), axis.others
            return axis.engine.run(result.archive, [inputs], timeout=timeout, symbols=others, pulse=streamed, path=path)

        outcome, inputs, expected = compare_stream(result, axis, run, pulse, criteria, timeout)
        if outcome.passed:
            outcome = _judge_longer_pulse(outcome, run(inputs, 2 * pulse), 2 * pulse, expected, criteria)
        outcome = replace(outcome, path="" if outcome.passed else path, paths=tuple(paths[:number]))
        if not outcome.passed:
            break
    return outcome.with_times(result.times)


def streamed_axis(result: ExportedArchive, pulse: int, criteria: Judgement, symbol: str | None) -> StreamedAxis:
    """Return the axis that a stream of an archive runs along. Raises InputError as `check_streaming` does."""
    engine, symbols = result.target.engine(), result.captured.symbols
    if not isinstance(engine, TractEngine):
        raise InputError(f"{engine.name} {engine.version} has no streams", hint="pulse= is for releases of tract")
    if pulse < 1:
        raise InputError(f"pulse={pulse}: a pulse has one step or more")
    if criteria.in_float64:
        raise InputError("a stream is compared with PyTorch's own outputs: choose another level than `float16`")
    name = symbol or result.target.writing.streamed_symbol or (next(iter(symbols)) if len(symbols) == 1 else None)
    if name not in symbols:
        symbol_names = ", ".join(symbols) or "none"
        hint = "give dynamic_axes"
        if symbols:
            hint = f"name it in the option, as pulse={{{next(iter(symbols))!r}: {pulse}}}, or as symbol= of a check"
        raise InputError(f"which dynamic axis is streamed? This model has {symbol_names}", hint=hint)
    _require_plain_axes(result, name)
    return StreamedAxis(engine, name, {other: size for other, size in symbols.items() if other != name})


def _require_plain_axes(result: ExportedArchive, symbol: str) -> None:
    """Raise InputError if an input's size is an expression of the symbol: tract counts a pulse in symbols."""
    for value, shape in zip(
        result.graph.inputs, (variable.shape for variable in result.captured.graph.inputs), strict=True
    ):
        for axis, extent in enumerate(shape):
            if symbol in symbols_of([extent]) and str(extent) != symbol:
                raise InputError(
                    f"axis {axis} of {value.name} has the size {extent}: pulse= needs an axis whose size is one symbol",
                    hint=f"declare the axis as plain {symbol}, and give a pulse that is a multiple",
                )


def compare_stream(
    result: ExportedArchive, axis: StreamedAxis, run: Run, pulse: int, criteria: Judgement, timeout: float
) -> tuple[Outcome, Sequence[Array], Sequence[Array]]:
    """Return the outcome of a stream against PyTorch on a whole sequence, with its inputs and expected outputs.

    The sequence has `PULSES` pulses, or more if the archive needs more steps or most of the outputs are late.
    Raises InputError if most of the outputs arrive after the longest sequence.
    """
    least = result.range.bounds.get(axis.symbol, (0, None))[0]
    count = first = max(PULSES, -(-least // pulse))
    while True:
        sample = result.sample_at({**axis.others, axis.symbol: pulse * count})
        reply = run(sample.inputs, pulse)
        got = reply.outputs[0] if reply.outputs else ()
        shares = [_known_share(want, have) for want, have in zip(sample.expected, got, strict=False)]
        if reply.status != "ok" or min(shares, default=1.0) >= ENOUGH:
            break
        if count >= max(MOST, 2 * first):
            raise InputError(
                f"after {pulse * count} steps less than half of the outputs has arrived: the delay is too long to check"
            )
        count *= 2
    expected = sample.expected
    if got:
        (sample,) = result.for_metrics([sample], criteria)
        pairs = [_common(want, have) for want, have in zip(sample.expected, got, strict=True)]
        original = sample.original and tuple(
            _common(want, have)[0] for want, have in zip(sample.original, got, strict=True)
        )
        sample = replace(sample, expected=tuple(want for want, _ in pairs), original=original)
        reply = replace(reply, outputs=(tuple(have for _, have in pairs),))
    names = result.output_names
    request = CheckRequest(
        result.archive,
        [sample],
        names,
        criteria,
        timeout,
        sensitivity=sensitivities(result.samples, names, criteria, result.constant_outputs),
        indifferent=indifferences(criteria.metrics, result.samples),
        metric_reference=result.metric_reference(criteria),
    )
    outcome = with_reason(check_parity(Answered(axis.engine.version, reply), request), result.graph)
    if outcome.status is Status.MISMATCH and got:
        outcome = _with_later_delay(outcome, expected, got, pulse, criteria)
    return replace(outcome, facts={**outcome.facts, "pulse": pulse}), sample.inputs, expected


def _with_later_delay(
    outcome: Outcome, expected: Sequence[Array], got: Sequence[Array], pulse: int, criteria: Judgement
) -> Outcome:
    """Return a mismatch with its reason, if the outputs are right some steps later than the engine states.

    tract counts the steps that a slice drops up to the length of the pulse: for `x[:, 3:]` by single steps it states a
    delay of 1, and not of 3.
    """
    names = [output.name for output in outcome.outputs]
    later = {}
    for name, want, have in zip(names, expected, got, strict=True):
        steps = _steps_until_right(want, have, criteria)
        if steps is None:
            return outcome
        later[name] = steps
    most = max(later.values())
    if not most:
        return outcome
    late = ", ".join(name for name, steps in later.items() if steps == most)
    message = f"the stream is right {most} step{'s' if most > 1 else ''} later than tract states: {late}"
    hint = f"tract counts steps that a slice drops up to one pulse only: give a pulse of {pulse + most} or more"
    return outcome.as_mismatch(
        ParityError, message, outputs=outcome.outputs, failed_sizes=outcome.failed_sizes, hint=hint
    )


def _steps_until_right(expected: Array, got: Array, criteria: Judgement) -> int | None:
    """Return how many steps of an output come before the right ones, or None where they never come."""
    axes = [axis for axis, (a, b) in enumerate(zip(expected.shape, got.shape, strict=False)) if a != b]
    if expected.ndim != got.ndim or len(axes) > 1:
        return None
    for axis in axes or range(got.ndim):
        for steps in range(int(got.shape[axis] * (1 - ENOUGH))):
            want, have = _common(expected, np.take(got, range(steps, got.shape[axis]), axis))
            if want.shape == have.shape and compare_outputs([want], [have], criteria=criteria)[0].passed:
                return steps
    return None


def _judge_longer_pulse(
    outcome: Outcome, reply: EngineReply, pulse: int, expected: Sequence[Array], criteria: Judgement
) -> Outcome:
    """Return a pass with the longer pulse as a fact, or the mismatch of a stream that depends on its pulse.

    A failure with this pulse, or no output within the sequence, does not affect the other pulse's outcome.
    """
    got = reply.outputs[0] if reply.status == "ok" and reply.outputs else ()
    if len(got) != len(expected) or not all(array.size for array in got):
        return outcome
    pairs = [_common(want, have) for want, have in zip(expected, got, strict=True)]
    names = [output.name for output in outcome.outputs]
    compared = compare_outputs(*zip(*pairs, strict=True), names=names, criteria=criteria)
    outcome = replace(outcome, facts={**outcome.facts, LONGER_PULSE: pulse})
    bad = [output.name for output in compared if not output.passed]
    if not bad:
        return outcome
    message = f"a stream in pulses of {pulse} gives other outputs than the whole: {', '.join(bad)}"
    return outcome.as_mismatch(PiecesError, message, outputs=tuple(compared))


def _known_share(expected: Array, got: Array) -> float:
    """Return the share of the expected elements that have arrived."""
    return min(got.size / expected.size, 1.0) if expected.size else 1.0


def _common(expected: Array, got: Array) -> tuple[Array, Array]:
    """Return both arrays up to the end of the shorter one, along the one axis in which they differ."""
    axes = [axis for axis, (a, b) in enumerate(zip(expected.shape, got.shape, strict=False)) if a != b]
    if expected.ndim != got.ndim or len(axes) != 1:
        return expected, got
    until = range(min(expected.shape[axes[0]], got.shape[axes[0]]))
    first, second = (np.ascontiguousarray(np.take(array, until, axes[0])) for array in (expected, got))
    return first, second
