"""Pieces of a sequence: an archive with state must return for pieces what it returns for the full sequence.

A time axis is a dynamic axis that all inputs have except the state. One sample runs again in two pieces, in the same
job: the second takes the state that the engine returned for the first. Both are compared with the engine's outputs for
the full sequence, so that PyTorch is only needed if they differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from t2n_core.engine.protocol import EngineReply
from t2n_core.errors import PiecesError
from t2n_core.level import TractCheckTolerance
from t2n_core.parity.comparison import OutputComparison, compare
from t2n_core.parity.further_runs.batches import SelfComparison
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import Answer, CheckRequest, Pairs
from t2n_core.parity.samples import Array, Sample
from t2n_core.parity.table import sizes_text

COMPARED_PIECES = "compared_pieces"
"""Fact of the outcome: the number of pieces that were compared with the full sequence."""
PIECES = "pieces"
"""Fact of the outcome: why pieces that differ from the full sequence are not a mismatch."""
DIFFERENT = "different in the model"
UNKNOWN = "different in the engine, without a model to ask"
_ROUNDINGS = 8
"""Differences up to this many units in the last place of an output's largest value, or times the model's, are rounding.

Engines and PyTorch multiply matrices of other sizes by other kernels: up to 4 units were measured.
"""
_CUTS = 8
"""Most cuts of one sample that are tried."""
_HINT = "in the model, pieces and full sequence agree: feed no state back, or export it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces(SelfComparison):
    """A sample that is cut in two along its time axis.

    The batches of all pieces but the first hold the sample's state, as a placeholder.
    """

    sample: int
    """The index of the sample."""
    joined: Mapping[int, int | None]
    """The outputs to compare: the axis along which the pieces are concatenated, None to take the last piece's."""

    def judge(self, outcome: Outcome, request: CheckRequest, reply: EngineReply, further_reply: EngineReply) -> Outcome:
        """Return a pass with facts added, or the mismatch of outputs that differ between pieces and full sequence.

        `further_reply` is the engine's reply to the pieces. The model runs only if the engine's pieces differ, and an
        output is a mismatch if it differs by far more than the model's.
        """
        sample, full_outputs = request.samples[self.sample], reply.outputs[self.sample]
        names = [output.name for output in outcome.outputs]
        facts = {**outcome.facts, COMPARED_PIECES: len(self.batches)}
        compared: tuple[OutputComparison, ...] = outcome.outputs
        if further_reply.status == "ok":
            compared = _compare(self, further_reply.outputs, full_outputs, names)
            if all(output.passed for output in compared):
                return replace(outcome, facts=facts)
        if request.model is None:
            return replace(outcome, facts={**facts, PIECES: UNKNOWN})
        try:
            allowed = _differences(request.model, self, sample)
        except Exception:  # the model does not take it in pieces either
            return replace(outcome, facts={**facts, PIECES: DIFFERENT})
        problem = f"fails: {further_reply.message}"
        if further_reply.status == "ok":
            compared = _compare(self, further_reply.outputs, full_outputs, names, allowed)
            bad = [output.name for output in compared if not output.passed]
            if not bad:
                return replace(outcome, facts={**facts, PIECES: DIFFERENT})
            problem = f"gives other outputs than the whole: {', '.join(bad)}"
        message = f"a sequence in {len(self.batches)} pieces at {sizes_text([sample.sizes])} {problem}"
        return replace(outcome, facts=facts).as_mismatch(
            PiecesError, message, outputs=compared, failed_sizes=(sample.sizes,), hint=_HINT
        )


def cut_sample(samples: Sequence[Sample], pairs: Pairs, holds: Callable[[Mapping[str, int]], bool]) -> Pieces | None:
    """Return the smallest sample with three steps or more in two pieces, otherwise one of two steps.

    None for samples without a time axis, with a state that does not fit the next call, or if the archive is not valid
    for two pieces.
    """
    time = _time_axis(samples, pairs) if pairs else None
    if time is None:
        return None
    name, axes = time
    growing = _growing_sizes(samples, pairs, name)
    joined = _joined_axes(samples, pairs, name)
    if growing is None or all(axis is None for axis in joined.values()):
        return None
    counts = [sample.sizes[name] for sample in samples]
    elements = [sum(array.size for array in sample.inputs) for sample in samples]
    for index in sorted(range(len(samples)), key=lambda index: (counts[index] < 3, elements[index])):
        sample, steps = samples[index], counts[index]
        if not all(array.size for array, axis in zip(sample.inputs, axes, strict=True) if axis is not None):
            continue
        for cut in sorted(range(1, steps), key=lambda cut: abs(2 * cut - steps - 1))[:_CUTS]:
            later = {symbol: sample.sizes[symbol] + cut for symbol in growing}
            sizes = {**sample.sizes, name: cut}, {**sample.sizes, **later, name: steps - cut}
            if all(map(holds, sizes)):
                places = range(cut), range(cut, steps)
                batches = tuple(tuple(map(_take, sample.inputs, axes, [part] * len(axes))) for part in places)
                return Pieces(batches=batches, pairs=pairs, sample=index, joined=joined)
    return None


def _time_axis(samples: Sequence[Sample], pairs: Pairs) -> tuple[str, list[int | None]] | None:
    """Return the name of the size that all inputs have except the state, and the axis of each; None for state."""
    state = {index for index, _ in pairs}
    for name in samples[0].sizes:
        if len({sample.sizes[name] for sample in samples}) < 2:
            continue
        inputs = zip(*(sample.inputs for sample in samples), strict=True)
        axes = [_axes_of(arrays, samples, name) for arrays in inputs]
        if any(axes) and all(len(input_axes) == (index not in state) for index, input_axes in enumerate(axes)):
            return name, [input_axes[0] if input_axes else None for input_axes in axes]
    return None


def _growing_sizes(samples: Sequence[Sample], pairs: Pairs, name: str) -> set[str] | None:
    """Return the state sizes that grow by the steps of a call; None if the state does not fit the next call."""
    growing: set[str] = set()
    for index, output in pairs:
        before = [sample.inputs[index] for sample in samples]
        after = [sample.expected[output] for sample in samples]
        if any((a.ndim, a.dtype) != (b.ndim, b.dtype) for a, b in zip(before, after, strict=True)):
            return None
        for axis in range(before[0].ndim):
            added = [b.shape[axis] - a.shape[axis] for a, b in zip(before, after, strict=True)]
            if not any(added):
                continue
            sizes = {symbol for symbol in samples[0].sizes if axis in _axes_of(before, samples, symbol)}
            if added != [sample.sizes[name] for sample in samples] or not sizes:
                return None
            growing |= sizes
    return growing


def _joined_axes(samples: Sequence[Sample], pairs: Pairs, name: str) -> dict[int, int | None]:
    """Return the outputs to compare for pieces: the time axis of each, None for state and outputs without one.

    An output whose other sizes depend on the number of steps is left out, such as attention weights.
    """
    state = {output for _, output in pairs}
    axis_of: dict[int, int | None] = {}
    for index in range(len(samples[0].expected)):
        arrays = [sample.expected[index] for sample in samples]
        axes = [] if index in state else _axes_of(arrays, samples, name)
        rest: dict[tuple[Any, ...], set[tuple[int, ...]]] = {}
        for array, sample in zip(arrays, samples, strict=True):
            others = tuple(size for symbol, size in sample.sizes.items() if symbol != name)
            rest.setdefault(others, set()).add(tuple(n for axis, n in enumerate(array.shape) if axis not in axes))
        if index in state or (len(axes) < 2 and all(len(shapes) == 1 for shapes in rest.values())):
            axis_of[index] = axes[0] if axes else None
    return axis_of


def _axes_of(arrays: Sequence[Array], samples: Sequence[Sample], name: str) -> list[int]:
    """Return the axes that have this size in all samples."""
    sizes = [sample.sizes[name] for sample in samples]
    return [axis for axis in range(arrays[0].ndim) if [array.shape[axis] for array in arrays] == sizes]


def _take(array: Array, axis: int | None, part: range) -> Array:
    return array if axis is None else np.ascontiguousarray(np.take(array, part, axis))


def _compare(
    plan: Pieces,
    pieces: Sequence[Sequence[Array]],
    full_outputs: Sequence[Array],
    names: Sequence[str],
    allowed: Mapping[int, float] | None = None,
) -> tuple[OutputComparison, ...]:
    """Return the comparison of each output; `allowed` are the differences of the model by the index of the output."""
    compared = []
    for index, joined in _join(plan, pieces).items():
        difference = 0.0 if allowed is None else allowed.get(index, math.inf)
        is_float = full_outputs[index].dtype.kind == "f"
        if math.isinf(difference) or (difference and not is_float):
            continue
        name = names[index] if index < len(names) else f"output_{index}"
        limits = {name: (_ROUNDINGS * max(difference, _rounding(full_outputs[index])), 0.0)} if is_float else {}
        criteria = Judgement(TractCheckTolerance.EXACT, limits=limits)
        compared.append(compare(full_outputs[index], joined, name=name, criteria=criteria))
    return tuple(compared)


def _join(plan: Pieces, pieces: Sequence[Sequence[Array]]) -> dict[int, Array]:
    """Return the outputs of the pieces put together."""
    results = {}
    for index, axis in plan.joined.items():
        parts = [outputs[index] for outputs in pieces]
        fits = axis is not None and len({part.shape[:axis] + part.shape[axis + 1 :] for part in parts}) == 1
        results[index] = np.concatenate(parts, axis) if fits and axis is not None else parts[-1]
    return results


def _rounding(array: Array) -> float:
    """Return the distance of the array's largest value to the next representable one."""
    largest = np.abs(array[np.isfinite(array)]).max(initial=0)
    return float(np.finfo(array.dtype).eps) * float(largest)


def _differences(model: Answer, plan: Pieces, sample: Sample) -> dict[int, float]:
    """Return the largest difference of each output of the model between the pieces and the full sequence."""
    pieces: list[Sequence[Array]] = []
    for batch in plan.batches:
        inputs = list(batch)
        for index, output in plan.pairs if pieces else ():
            inputs[index] = pieces[-1][output]
        pieces.append(model(inputs))
    full_outputs = model(sample.inputs)
    differences = {}
    for index, joined in _join(plan, pieces).items():
        compared = compare(full_outputs[index], joined)
        differences[index] = math.inf if compared.problem else compared.max_abs
    return differences
