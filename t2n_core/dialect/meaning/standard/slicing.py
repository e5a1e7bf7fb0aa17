"""Choice of elements by their position, and padding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.meaning.windows import padded
from t2n_core.dialect.registry import defines
from t2n_core.dialect.sizes import Size


@defines("slice")
def slice_axes(
    input: NDArray[Any], axes: list[int], begin: list[int], end: list[int], stride: list[int] | None = None
) -> NDArray[Any]:
    """Return the elements from `begin` to before `end` along each of the axes, every `stride`-th.

    Shapes: max(ceil((end - begin) / stride), 0) along each axis; other axes stay.
    Domain: a written bound below 0 counts from the end of the axis, and a written `end` of 0 with a positive stride is
    the end of the axis. A bound that is computed from sizes is not negative, and 0 is 0: raises ValueError.
    Special values: a bound beyond the axis is its end, one before it its beginning. A negative stride goes from `begin`
    down to after `end`; the elements from the last to the first need an `end` below minus the extent.
    Source: NNEF 1.0.5, Tensor Shape Operations (slice); tract nnef/src/ops/nnef/deser.rs for computed bounds.
    """
    for axis, first, last, step in zip(axes, begin, end, stride or [1] * len(axes), strict=True):
        extent = input.shape[axis]
        start = _position(first, extent)
        stop = extent if last == 0 and step > 0 and not isinstance(last, Size) else _position(last, extent)
        if step > 0:
            chosen = range(max(start, 0), min(stop, extent), step)
        else:
            chosen = range(min(start, extent - 1), max(stop, -1), step)
        input = input[(slice(None),) * axis + (np.array(chosen, dtype=np.int64) if step != 1 else _span(chosen),)]
    return input


def _position(bound: int, extent: int) -> int:
    if bound < 0 and isinstance(bound, Size):
        raise ValueError(f"the bound {bound} is computed, and negative")
    return bound + extent if bound < 0 else bound


def _span(chosen: range) -> slice:
    return slice(chosen.start, max(chosen.stop, chosen.start))


@defines("gather")
def gather(input: NDArray[Any], indices: NDArray[Any], axis: int = 0) -> NDArray[Any]:
    """Return the slices along an axis that the indices name.

    Shapes: the axis is replaced by the axes of `indices`.
    Domain: 0 <= index < extent; raises IndexError.
    Source: NNEF 1.0.5, Tensor Shape Operations (gather).
    """
    if (indices < 0).any():  # NumPy counts it from the end, and refuses one beyond the axis by itself
        raise IndexError(f"an index is not within 0 to {input.shape[axis] - 1}")
    return np.take(input, indices, axis)


@defines("pad")
def pad(
    input: NDArray[Any], padding: list[tuple[int, int]], border: str = "constant", value: float = 0.0
) -> NDArray[Any]:
    """Return the input with elements added before and after each axis.

    Formula: border `constant` adds `value`, `replicate` (in tract `replicated`) the nearest element, `reflect` the
    elements mirrored at the first or last one, `reflect-even` the same with that one repeated.
    Shapes: extent + before + after for each axis. A negative amount removes elements.
    Source: NNEF 1.0.5, Tensor Shape Operations (pad).
    """
    return padded(input, padding, border, value)
