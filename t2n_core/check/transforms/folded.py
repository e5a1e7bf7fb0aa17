"""Caches that a transform folds into the model: steps of one State that starts with empty caches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.check.transforms.interface import Interface
from t2n_core.errors import InputError
from t2n_core.parity.samples import Array, Sample

_STEPS = 4
"""Fewest steps; each continues from the state of the previous ones."""
_STORED = 96
"""Least final length of a quantised cache: the engine does not quantise its newest 32 steps."""


def steps_of(
    result: ExportedArchive, before: Interface, now: Interface, inputs: Sequence[int], *, quantised: bool
) -> tuple[tuple[int, ...], list[Sample]]:
    """Return the indices of the outputs that are left, and steps with the inputs and outputs that are left.

    `inputs` are the indices of the inputs that are left. There are more steps for a `quantised` cache. The expected
    outputs of a step are computed with the caches of the previous step.

    Raises InputError if the model cannot start with empty caches.
    """
    pairs = _pairs(result, before, now, inputs)
    caches = dict(pairs)
    outputs = tuple(index for index in range(len(before.outputs)) if index not in caches.values())
    symbol, axis = _growing(result, pairs[0])
    cache_extents = {str(extent) for index in caches for extent in result.graph.inputs[index].shape}
    new = [name for name in result.captured.symbols if name not in cache_extents]
    state: dict[int, Array] = {}
    steps: list[Sample] = []
    length = turn = 0
    while turn < _STEPS or (quantised and length < _STORED):
        drawn = _draw_sample(result, {**_step_sizes(result, new, turn), symbol: length})
        arrays = [state.get(index, array) for index, array in enumerate(drawn.inputs)]
        got = result.reference.answer(arrays, result.stored)
        state = {into: got[source] for into, source in pairs}
        length, turn = state[pairs[0][0]].shape[axis], turn + 1
        left = tuple(arrays[index] for index in inputs)
        steps.append(replace(drawn, inputs=left, expected=tuple(got[index] for index in outputs), original=None))
    return outputs, steps


def _pairs(result: ExportedArchive, before: Interface, now: Interface, inputs: Sequence[int]) -> list[tuple[int, int]]:
    """Return pairs of indices: a removed input, and the output that was its next value."""
    gone = [index for index in range(len(before.inputs)) if index not in inputs]
    declared = {pair.input: pair.output for pair in result.state}
    if all(result.input_names[index] in declared for index in gone):
        return [(index, result.output_names.index(declared[result.input_names[index]])) for index in gone]
    left = {port.name for port in now.outputs}
    ended = [index for index, port in enumerate(before.outputs) if port.name not in left]
    if len(ended) != len(gone):
        raise InputError(
            f"the transform keeps {', '.join(result.input_names[index] for index in gone)} in the engine, and their "
            "next values among the outputs are not declared",
            hint="declare them with state= when the model is exported",
        )
    return list(zip(gone, ended, strict=True))


def _growing(result: ExportedArchive, pair: tuple[int, int]) -> tuple[str, int]:
    """Return the symbol of the axis along which a cache grows, and the index of that axis."""
    value = result.graph.inputs[pair[0]]
    example = result.samples[0]
    shapes = example.inputs[pair[0]].shape, example.expected[pair[1]].shape
    for axis, (old, new) in enumerate(zip(*shapes, strict=True)):
        if old != new and str(value.shape[axis]) in result.captured.symbols:
            return str(value.shape[axis]), axis
    raise InputError(f"the cache {value.name} grows along no dynamic axis, so that it cannot start empty")


def _step_sizes(result: ExportedArchive, new: Sequence[str], turn: int) -> dict[str, int]:
    """Return the sizes of a step: the example's, or every other step 1 for symbols without a cache, if that runs."""
    sizes = dict(result.captured.symbols)
    shorter = {**sizes, **dict.fromkeys(new, 1)}
    return shorter if turn % 2 and _holds(result, shorter) else sizes


def _holds(result: ExportedArchive, sizes: Mapping[str, int]) -> bool:
    return not result.range.bounds or result.range.holds(sizes)


def _draw_sample(result: ExportedArchive, sizes: dict[str, int]) -> Sample:
    if not _holds(result, sizes):
        raise InputError(f"caches start empty in the engine, and the archive is valid only for {result.range}")
    try:
        return result.sample_at(sizes)
    except InputError as cause:
        raise InputError(
            f"caches start empty in the engine, and the model does not run there: {cause.message}",
            hint="check_generation checks a model with its caches token by token",
        ) from cause
