"""Operators of streams, which are computed pulse by pulse: the first pulse of each."""

from __future__ import annotations

import numpy as np

from t2n_core.dialect.arrays import Array, all_axes
from t2n_core.dialect.meaning.tract.reduction import cumsum
from t2n_core.dialect.registry import defines
from t2n_core.errors import SpecError


def _at(rank: int, axis: int, part: slice) -> tuple[slice, ...]:
    return tuple(part if at == axis else slice(None) for at in range(rank))


@defines("tract_pulse_cumsum")
def pulse_cumsum(input: Array, axis: int, exclusive: bool, skip: int) -> Array:
    """Return the running sums along the axis of a stream, from the frame `skip` on.

    Formula: as for `tract_core_cumsum` over the frames from `skip` on; the frames before are 0, and do not count. This
    is the first pulse; a later pulse adds to the sum of the earlier pulses.
    Source: tract pulse-opl/src/cumsum.rs.
    """
    canonical_axis = all_axes(input.ndim, axis)[0]
    output = np.zeros_like(input)
    rest = _at(input.ndim, canonical_axis, slice(skip, None))
    output[rest] = cumsum(input[rest], canonical_axis, exclusive, False)
    return output


@defines("tract_pulse_delay")
def pulse_delay(input: Array, axis: int, delay: int, overlap: int, zero_pad: bool = False) -> Array:
    """Return a stream as it was `delay` frames ago, with `overlap` earlier frames in front.

    Shapes: the axis is longer by `overlap`. Formula: out[t] = x[t - delay - overlap], 0 before the stream. `zero_pad`
    declares those zeros as padding, and does not change the values. This is the first pulse; a later one continues the
    stream.
    Source: tract pulse-opl/src/delay.rs.
    """
    canonical_axis = all_axes(input.ndim, axis)[0]
    before = [(delay + overlap, 0) if at == canonical_axis else (0, 0) for at in range(input.ndim)]
    return np.pad(input, before)[
        _at(input.ndim, canonical_axis, slice(0, input.shape[canonical_axis] + overlap))
    ].copy()


@defines("tract_pulse_mask")
def pulse_mask(input: Array, axis: int, begin: int, end: int, value: float) -> Array:
    """Return a stream in which the frames before `begin`, and from `end` on, are `value`.

    Shapes: same as the input. The frames are counted from the beginning of the stream; this is the first pulse.
    Source: tract pulse-opl/src/mask.rs.
    """
    canonical_axis, output = all_axes(input.ndim, axis)[0], input.copy()
    output[_at(input.ndim, canonical_axis, slice(0, max(begin, 0)))] = value
    output[_at(input.ndim, canonical_axis, slice(max(end, 0), None))] = value
    return output


@defines("tract_pulse_pulse_pad")
def pulse_pad(
    input: Array,
    axis: int,
    before: int,
    after: int,
    begin_input: int,
    end_input: int,
    border: str,
    value: float = 0.0,
    overlap: int = 0,
) -> Array:
    """Return a stream whose frames from `begin_input` to, without, `end_input` are valid, with padding around them.

    Formula: the `before` frames before `begin_input` and the `after` frames from `end_input` on are `value` (border
    `constant`), or the first and the last valid frame (border `replicated`). Frames further out have no meaning.
    Shapes: same as the input. This is the first pulse; a later pulse continues the stream and repeats `overlap` frames
    of it.
    Source: tract pulse-opl/src/pad.rs.
    """
    canonical_axis, rank, output = all_axes(input.ndim, axis)[0], input.ndim, input.copy()
    leading, trailing = (
        _at(rank, canonical_axis, slice(0, begin_input)),
        _at(rank, canonical_axis, slice(end_input, None)),
    )
    if border == "constant":
        output[leading] = value
        if after > 0:
            output[trailing] = value
    elif border == "replicated":
        output[leading] = input[_at(rank, canonical_axis, slice(begin_input, begin_input + 1))]
        if after > 0:
            output[trailing] = input[_at(rank, canonical_axis, slice(end_input - 1, end_input))]
    else:
        raise SpecError(f"no border of a stream is called {border!r}", op="tract_pulse_pulse_pad")
    return output
