"""Operators that the standard lacks, expressed by those it has: elementwise gather and scatter, and products."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from t2n_core.nnef.graph import FLOAT32, INT64, Value
from t2n_core.nnef.khronos.builder import KhronosBuilder
from t2n_core.nnef.khronos.integers import EXACT


def gather_elements(g: KhronosBuilder, input: Value, indices: Value, axis: int) -> Value:
    """Return out[i][j] = input[indices[i][j]][j] for axis 0, read from the flattened tensor at computed indices."""
    shape, extents = ([int(size) for size in v.shape] for v in (indices, input))
    count = int(np.prod(extents))
    if count > EXACT:
        raise g.fail(
            f"indices into a tensor of {count} elements are beyond 2^24, and NNEF 1.0 computes them in float32"
        )
    strides = [int(np.prod(extents[i + 1 :])) for i in range(input.rank)]
    others = [
        np.arange(n) * s if i != axis else np.zeros(1) for i, (n, s) in enumerate(zip(shape, strides, strict=True))
    ]
    first = np.asarray(sum(np.ix_(*others)), FLOAT32)
    places = g.mul(g.cast(indices, FLOAT32), float(strides[axis])) if strides[axis] != 1 else g.cast(indices, FLOAT32)
    places = g.add(places, g.constant(first)) if first.any() else places
    flat = g.cast(g.reshape_to(places, [int(np.prod(shape))]), INT64)
    return g.reshape_to(g.gather(g.reshape_to(input, [count]), flat, axis=0), shape)


def scatter_elements(g: KhronosBuilder, input: Value, indices: Value, updates: Value, axis: int) -> Value:
    """Return `input` with out[indices[i][j]][j] = updates[i][j] for axis 0; of equal indices, the last one wins.

    Every position is compared with every index.
    """
    shape, extents = ([int(size) for size in v.shape] for v in (indices, input))
    trailing = [1] * (input.rank - axis - 1)
    places = g.constant(np.arange(extents[axis], dtype=FLOAT32).reshape(-1, 1, *trailing))
    numbers = g.constant(np.arange(1, shape[axis] + 1, dtype=FLOAT32).reshape(-1, *trailing))
    matches = g.eq(g.unsqueeze(g.cast(indices, FLOAT32), axes=[axis]), places)
    last = g.squeeze(g.max_reduce(g.select(matches, numbers, 0.0), axes=[axis + 1]), axes=[axis + 1])
    source = g.cast(g.max(g.sub(last, 1.0), 0.0), INT64)
    is_written = g.gt(last, 0.0)
    reached = [size if i != axis else extents[axis] for i, size in enumerate(shape)]
    written = g.select(is_written, gather_elements(g, updates, source, axis), _crop(g, input, reached))
    for other, (have, want) in enumerate(zip(reached, extents, strict=True)):
        if have != want:  # indices may cover only a part of the other axes
            tail = _crop(g, g.take(input, other, have, want), [*extents[:other], want - have, *reached[other + 1 :]])
            written = g.concat([written, tail], axis=other)
    return written


def _crop(g: KhronosBuilder, value: Value, shape: Sequence[int]) -> Value:
    for axis, size in enumerate(shape):
        value = g.take(value, axis, 0, size)
    return value


def product_reduce(g: KhronosBuilder, input: Value, axes: Sequence[int]) -> Value:
    """Return the product along axes, which are kept with size 1, by repeatedly multiplying one half by the other."""
    for axis in axes:
        while (size := int(input.shape[axis])) > 1:
            half = size // 2
            folded = g.mul(g.take(input, axis, 0, half), g.take(input, axis, half, 2 * half))
            input = g.concat([folded, g.take(input, axis, 2 * half, size)], axis=axis) if size % 2 else folded
    return input


FORMS: Mapping[str, Callable[..., Value]] = {
    "tract_core_gather_elements": gather_elements,
    "tract_core_scatter_elements": scatter_elements,
    "tract_core_product_reduce": product_reduce,
}
"""tract operator used by rules -> function that expresses it in standard NNEF."""
