"""Pieces of a sequence: an archive with state must give in pieces what it gives for the whole.

A time axis is one of dynamic size along which all inputs run but the state. One sample runs again in two pieces, in the
same job: the second one takes the state that the engine gave for the first. Both are compared with what the engine gave
for the whole, so that no PyTorch is needed as long as they agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from t2n_core.check.comparison import OutputComparison, compare
from t2n_core.check.judging.further import SelfComparison
from t2n_core.check.judging.judgement import Judgement
from t2n_core.check.outcome import Outcome
from t2n_core.check.request import Answer, CheckRequest, Pairs
from t2n_core.check.samples import Array, Sample
from t2n_core.check.table import sizes_text
from t2n_core.engine.protocol import EngineReply
from t2n_core.errors import PiecesError
from t2n_core.level import TractCheckTolerance

COMPARED_PIECES = "compared_pieces"
"""Fact of the outcome: the number of pieces that were compared with the whole."""
PIECES = "pieces"
"""Fact of the outcome: why pieces that differ from the whole are no mismatch."""
DIFFERENT = "different in the model"
UNKNOWN = "different in the engine, without a model to ask"
_ROUNDINGS = 8
"""Most units in the last place of an output's largest number, or differences of the model's, that are rounding.

Engines and PyTorch multiply matrices of other sizes by other kernels: up to 4 units were measured.
"""
_CUTS = 8
"""Most cuts of one sample that are tried."""
_HINT = "in the model the pieces give what the whole gives: feed no state back, or export it anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces(SelfComparison):
    """A sample that is cut in two along its time axis.

    The state in the batches of all pieces but the first is that of the sample, and stands for another one.
    """

    sample: int
    """The index of the sample."""
    joined: Mapping[int, int | None]
    """The outputs to compare: the axis along which the pieces are joined, None where the last piece gives it."""

    def judge(self, found: Outcome, request: CheckRequest, reply: EngineReply, own: EngineReply) -> Outcome:
        """Return a pass as it is, with facts, or the mismatch of outputs that differ between the pieces and the whole.

        `own` is the engine's reply to the pieces. The model is asked only if those of the engine differ, and an output
        is a mismatch if it differs by far more than that of the model.
        """
        sample, whole = request.samples[self.sample], reply.outputs[self.sample]
        names = [output.name for output in found.outputs]
        facts = {**found.facts, COMPARED_PIECES: len(self.batches)}
        compared: tuple[OutputComparison, ...] = found.outputs
        if own.status == "ok":
            compared = _compared(self, own.outputs, whole, names)
            if all(output.passed for output in compared):
                return replace(found, facts=facts)
        if request.model is None:
            return replace(found, facts={**facts, PIECES: UNKNOWN})
        try:
            allowed = _differences(request.model, self, sample)
        except Exception:  # the model does not take it in pieces either
            return replace(found, facts={**facts, PIECES: DIFFERENT})
        what = f"fails: {own.message}"
        if own.status == "ok":
            compared = _compared(self, own.outputs, whole, names, allowed)
            bad = [output.name for output in compared if not output.passed]
            if not bad:
                return replace(found, facts={**facts, PIECES: DIFFERENT})
            what = f"gives other outputs than the whole: {', '.join(bad)}"
        message = f"a sequence in {len(self.batches)} pieces at {sizes_text([sample.sizes])} {what}"
        return replace(found, facts=facts).as_mismatch(
            PiecesError, message, outputs=compared, failed_sizes=(sample.sizes,), hint=_HINT
        )


def cut_sample(samples: Sequence[Sample], pairs: Pairs, holds: Callable[[Mapping[str, int]], bool]) -> Pieces | None:
    """Return the smallest sample with three steps or more in two pieces, else one of two steps.

    None for samples without a time axis or whose state does not fit the next call, and where the archive does not hold
    for two pieces.
    """
    time = _time_axis(samples, pairs) if pairs else None
    if time is None:
        return None
    name, axes = time
    growing = _growing_sizes(samples, pairs, name)
    joined = _joined(samples, pairs, name)
    if growing is None or all(axis is None for axis in joined.values()):
        return None
    counts = [sample.sizes[name] for sample in samples]
    elements = [sum(array.size for array in sample.inputs) for sample in samples]
    for index in sorted(range(len(samples)), key=lambda index: (counts[index] < 3, elements[index])):
        sample, steps = samples[index], counts[index]
        if not all(array.size for array, axis in zip(sample.inputs, axes, strict=True) if axis is not None):
            continue
        for cut in sorted(range(1, steps), key=lambda cut: abs(2 * cut - steps - 1))[:_CUTS]:
            later = {one: sample.sizes[one] + cut for one in growing}
            sizes = {**sample.sizes, name: cut}, {**sample.sizes, **later, name: steps - cut}
            if all(map(holds, sizes)):
                places = range(cut), range(cut, steps)
                batches = tuple(tuple(map(_taken, sample.inputs, axes, [part] * len(axes))) for part in places)
                return Pieces(batches=batches, pairs=pairs, sample=index, joined=joined)
    return None


def _time_axis(samples: Sequence[Sample], pairs: Pairs) -> tuple[str, list[int | None]] | None:
    """Return the name of the size along which all inputs run but the state, and the axis of each; None for state."""
    state = {place for place, _ in pairs}
    for name in samples[0].sizes:
        if len({sample.sizes[name] for sample in samples}) < 2:
            continue
        inputs = zip(*(sample.inputs for sample in samples), strict=True)
        axes = [_axes_of(arrays, samples, name) for arrays in inputs]
        if any(axes) and all(len(found) == (place not in state) for place, found in enumerate(axes)):
            return name, [found[0] if found else None for found in axes]
    return None


def _growing_sizes(samples: Sequence[Sample], pairs: Pairs, name: str) -> set[str] | None:
    """Return the sizes of state that each call makes larger by its steps; None if the state does not fit the next."""
    growing: set[str] = set()
    for place, output in pairs:
        before = [sample.inputs[place] for sample in samples]
        after = [sample.expected[output] for sample in samples]
        if any((a.ndim, a.dtype) != (b.ndim, b.dtype) for a, b in zip(before, after, strict=True)):
            return None
        for axis in range(before[0].ndim):
            added = [b.shape[axis] - a.shape[axis] for a, b in zip(before, after, strict=True)]
            if not any(added):
                continue
            sizes = {one for one in samples[0].sizes if axis in _axes_of(before, samples, one)}
            if added != [sample.sizes[name] for sample in samples] or not sizes:
                return None
            growing |= sizes
    return growing


def _joined(samples: Sequence[Sample], pairs: Pairs, name: str) -> dict[int, int | None]:
    """Return the outputs that pieces can give: the axis of time of each, None for state and what has no such axis.

    An output whose other sizes follow the number of steps is left out, such as weights of attention.
    """
    state = {output for _, output in pairs}
    found: dict[int, int | None] = {}
    for place in range(len(samples[0].expected)):
        arrays = [sample.expected[place] for sample in samples]
        axes = [] if place in state else _axes_of(arrays, samples, name)
        rest: dict[tuple[Any, ...], set[tuple[int, ...]]] = {}
        for array, sample in zip(arrays, samples, strict=True):
            others = tuple(size for one, size in sample.sizes.items() if one != name)
            rest.setdefault(others, set()).add(tuple(n for axis, n in enumerate(array.shape) if axis not in axes))
        if place in state or (len(axes) < 2 and all(len(shapes) == 1 for shapes in rest.values())):
            found[place] = axes[0] if axes else None
    return found


def _axes_of(arrays: Sequence[Array], samples: Sequence[Sample], name: str) -> list[int]:
    """Return the axes that have this size in all samples."""
    sizes = [sample.sizes[name] for sample in samples]
    return [axis for axis in range(arrays[0].ndim) if [array.shape[axis] for array in arrays] == sizes]


def _taken(array: Array, axis: int | None, part: range) -> Array:
    return array if axis is None else np.ascontiguousarray(np.take(array, part, axis))


def _compared(
    plan: Pieces,
    pieces: Sequence[Sequence[Array]],
    whole: Sequence[Array],
    names: Sequence[str],
    allowed: Mapping[int, float] | None = None,
) -> tuple[OutputComparison, ...]:
    """Return the comparison of each output; `allowed` are the differences of the model by the place of the output."""
    found = []
    for place, joined in _join(plan, pieces).items():
        difference = 0.0 if allowed is None else allowed.get(place, math.inf)
        is_float = whole[place].dtype.kind == "f"
        if math.isinf(difference) or (difference and not is_float):
            continue
        name = names[place] if place < len(names) else f"output_{place}"
        limits = {name: (_ROUNDINGS * max(difference, _rounding(whole[place])), 0.0)} if is_float else {}
        criteria = Judgement(TractCheckTolerance.EXACT, limits=limits)
        found.append(compare(whole[place], joined, name=name, criteria=criteria))
    return tuple(found)


def _join(plan: Pieces, pieces: Sequence[Sequence[Array]]) -> dict[int, Array]:
    """Return the outputs that the pieces give together."""
    found = {}
    for place, axis in plan.joined.items():
        parts = [outputs[place] for outputs in pieces]
        fits = axis is not None and len({part.shape[:axis] + part.shape[axis + 1 :] for part in parts}) == 1
        found[place] = np.concatenate(parts, axis) if fits and axis is not None else parts[-1]
    return found


def _rounding(array: Array) -> float:
    """Return the distance of the array's largest number to the next one."""
    largest = np.abs(array[np.isfinite(array)]).max(initial=0)
    return float(np.finfo(array.dtype).eps) * float(largest)


def _differences(model: Answer, plan: Pieces, sample: Sample) -> dict[int, float]:
    """Return the largest difference of each output of the model between the pieces and the whole."""
    pieces: list[Sequence[Array]] = []
    for batch in plan.batches:
        inputs = list(batch)
        for place, output in plan.pairs if pieces else ():
            inputs[place] = pieces[-1][output]
        pieces.append(model(inputs))
    whole = model(sample.inputs)
    found = {}
    for place, joined in _join(plan, pieces).items():
        compared = compare(whole[place], joined)
        found[place] = math.inf if compared.problem else compared.max_abs
    return found


__all__ = [
    "COMPARED_PIECES", "DIFFERENT", "PIECES", "UNKNOWN", "Pieces", "cut_sample",
]  # fmt: skip
