"""Convolutions and their transposes, over tensors [batch, channels, …]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.meaning.windows import Windows, padded, windows_of
from t2n_core.dialect.registry import defines


def _bias(output: NDArray[Any], bias: NDArray[Any] | float) -> NDArray[Any]:
    """Return the output plus a bias: one value, or one for each channel, [C], [1, C] or [1, C, 1, …]."""
    return output + np.asarray(bias, dtype=np.float64).reshape(1, -1, *[1] * (output.ndim - 2))


def _product(matrices: NDArray[Any], columns: NDArray[Any]) -> NDArray[Any]:
    """Return matrices [groups, m, k] times columns [batch, groups, k, positions]."""
    if matrices.shape[2] == 1:
        return matrices[None] * columns
    return np.matmul(matrices, columns)


def _check(input: NDArray[Any], channels: int, border: str, allowed: tuple[str, ...] = ()) -> None:
    if input.dtype.kind != "f":
        raise ValueError("the input is not of floats: a convolution of integers is `tract_core_qconv`")
    if input.shape[1] != channels:
        raise ValueError(f"the filter is for {channels} channels, and the input has {input.shape[1]}")
    if allowed and border not in allowed:
        raise ValueError(f"border {border!r} has no definition here")


@defines("conv")
def conv(
    input: NDArray[Any],
    filter: NDArray[Any],
    bias: NDArray[Any] | float = 0.0,
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
    groups: int = 1,
) -> NDArray[Any]:
    """Return the sums of products of a filter with the windows of the input (a cross-correlation: nothing is flipped).

    Formula: out[n, o, p] = bias[o] + sum over i, k of filter[o, i, k] * in[n, group(o) + i, p * stride + k * dilation].
    Shapes: input [n, c, …], filter [o, c / groups, …], bias [1, o] or one value, result [n, o, …] with
    floor((extent + before + after - (k - 1) * dilation - 1) / stride) + 1 positions. Padding, stride and dilation are
    of the axes from the third on. Without padding there are ceil(extent / stride) positions, the missing elements on
    both sides, an odd one after. `groups = 0` is one group for each channel.
    Domain: floats. Border `constant` and `ignore` pad with zeros.
    Special values: 0 * inf = NaN, also where the zero is of the filter.
    Source: NNEF 1.0.5, Sliding-Window Operations (conv).
    """
    count = groups or input.shape[1]
    _check(input, filter.shape[1] * count, border)
    windows = windows_of(input.shape[2:], filter.shape[2:], padding, stride, dilation)
    spatial = windows.count(input.shape[2:])
    padded_input = padded(input, [(0, 0), (0, 0), *windows.padding], border)
    batch, outputs, inputs = input.shape[0], filter.shape[0] // count, filter.shape[1]
    total = np.zeros((batch, count, outputs, int(np.prod(spatial))))
    taps = filter.reshape(count, outputs, inputs, -1)
    for number, offset in enumerate(windows.offsets()):
        columns = padded_input[(slice(None), slice(None), *windows.places(offset, spatial))].reshape(
            batch, count, inputs, -1
        )
        total += _product(taps[..., number], columns)
    return _bias(total.reshape(batch, count * outputs, *spatial), bias)


def transposed(
    space: Sequence[int],
    size: Sequence[int],
    padding: Sequence[Sequence[int]] | None,
    stride: Sequence[int] | None,
    dilation: Sequence[int] | None,
    output_shape: Sequence[int] | None,
) -> tuple[Windows, tuple[int, ...], tuple[int, ...]]:
    """Return the windows of a transposed convolution, the extents that they reach, and the result's extents."""
    steps = tuple(stride or [1] * len(space))
    result_extents = tuple(output_shape[-len(space) :]) if output_shape else None
    if result_extents is None and not padding:
        result_extents = tuple(extent * step for extent, step in zip(space, steps, strict=True))
    windows = windows_of(result_extents or space, size, padding, steps, dilation)
    reached = tuple((extent - 1) * step + span for extent, step, span in zip(space, steps, windows.span, strict=True))
    if result_extents is None:
        result_extents = tuple(reach - sum(amount) for reach, amount in zip(reached, windows.padding, strict=True))
    return windows, reached, result_extents


@defines("deconv")
def deconv(
    input: NDArray[Any],
    filter: NDArray[Any],
    bias: NDArray[Any] | float = 0.0,
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
    output_shape: list[int] | None = None,
    groups: int = 1,
) -> NDArray[Any]:
    """Return the transpose of `conv`: each element of the input, times the filter, is added to a window of the result.

    Formula: out[n, o, p * stride + k * dilation - before] += filter[o, i, k] * in[n, group(o) + i, p], plus bias[o].
    Shapes: input [n, c, …], result [n, o, …]. The filter is laid out as tract reads it, [o, c / groups, …]; the
    standard's is [c, o / groups, …]. The result has (extent - 1) * stride + (k - 1) * dilation + 1 - before - after
    elements, extent * stride without padding, or the last extents of `output_shape`, if given, with zeros where no
    window reaches. `groups = 0` is one group for each channel.
    Domain: floats; border `constant` or `ignore`: what lies outside of the result is dropped.
    Source: NNEF 1.0.5, Sliding-Window Operations (deconv); tract core/src/ops/cnn/deconv for the layout.
    """
    count = groups or input.shape[1]
    _check(input, filter.shape[1] * count, border, ("constant", "ignore"))
    space = input.shape[2:]
    windows, reached, result_extents = transposed(space, filter.shape[2:], padding, stride, dilation, output_shape)
    batch, outputs, inputs = input.shape[0], filter.shape[0] // count, filter.shape[1]
    total = np.zeros((batch, count, outputs, *reached))
    taps = filter.reshape(count, outputs, inputs, -1)
    columns = input.reshape(batch, count, inputs, -1)
    for number, offset in enumerate(windows.offsets()):
        product = _product(taps[..., number], columns)
        total[(slice(None), slice(None), slice(None), *windows.places(offset, space))] += product.reshape(
            batch, count, outputs, *space
        )
    cut = [
        (-before, before + size - reach)
        for (before, _), size, reach in zip(windows.padding, result_extents, reached, strict=True)
    ]
    whole_output = padded(total.reshape(batch, count * outputs, *reached), [(0, 0), (0, 0), *cut], "constant")
    return _bias(whole_output, bias)


@defines("deconv", standard=True)
def deconv_of_standard(
    input: NDArray[Any],
    filter: NDArray[Any],
    bias: NDArray[Any] | float = 0.0,
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
    output_shape: list[int] | None = None,
    groups: int = 1,
) -> NDArray[Any]:
    """Return what tract's `deconv` does, of a filter [c, o / groups, …].

    Source: NNEF 1.0.5, Sliding-Window Operations (deconv).
    """
    swapped = _as_tract_reads(filter, groups or input.shape[1])
    return deconv(input, swapped, bias, border, padding, stride, dilation, output_shape, groups)


def _as_tract_reads(filter: NDArray[Any], groups: int) -> NDArray[Any]:
    """Return a filter [c, o / groups, …] of a transposed convolution as [o, c / groups, …]."""
    inputs, outputs, *window = filter.shape
    if inputs % groups:
        raise ValueError(f"{inputs} channels of the filter do not divide into {groups} groups")
    swapped = filter.reshape(groups, inputs // groups, outputs, *window).swapaxes(1, 2)
    return swapped.reshape(groups * outputs, inputs // groups, *window)


@defines("separable_conv")
def separable_conv(
    input: NDArray[Any],
    plane_filter: NDArray[Any],
    point_filter: NDArray[Any],
    bias: NDArray[Any] | float = 0.0,
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
    groups: int = 1,
) -> NDArray[Any]:
    """Return a convolution of each channel by itself, followed by one that mixes the channels.

    Formula: conv(conv(input, plane_filter, …, groups = 0), point_filter, bias, groups = groups).
    Shapes: plane_filter [c, 1, …], point_filter [o, c / groups, 1, …].
    Source: NNEF 1.0.5, Linear Operations (separable_conv).
    """
    planes = conv(input, plane_filter, 0.0, border, padding, stride, dilation, 0)
    return conv(planes, point_filter, bias, groups=groups)


@defines("separable_deconv")
def separable_deconv(
    input: NDArray[Any],
    plane_filter: NDArray[Any],
    point_filter: NDArray[Any],
    bias: NDArray[Any] | float = 0.0,
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
    output_shape: list[int] | None = None,
    groups: int = 1,
) -> NDArray[Any]:
    """Return a transposed convolution that mixes the channels, followed by one of each channel by itself.

    Formula: deconv(deconv(input, point_filter, groups = groups), plane_filter, bias, …, groups = 0).
    Shapes: as `deconv` reads its filters: point_filter [o, c / groups, 1, …], plane_filter [o, 1, …].
    Source: NNEF 1.0.5, Linear Operations (separable_deconv).
    """
    mixed = deconv(input, point_filter, groups=groups)
    return deconv(mixed, plane_filter, bias, border, padding, stride, dilation, output_shape, 0)


@defines("separable_deconv", standard=True)
def separable_deconv_of_standard(
    input: NDArray[Any],
    plane_filter: NDArray[Any],
    point_filter: NDArray[Any],
    bias: NDArray[Any] | float = 0.0,
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
    output_shape: list[int] | None = None,
    groups: int = 1,
) -> NDArray[Any]:
    """Return what tract's `separable_deconv` does, of a point filter [c, o / groups, 1, …].

    Source: NNEF 1.0.5, Linear Operations (separable_deconv).
    """
    mixed = deconv_of_standard(input, point_filter, groups=groups)
    return deconv(mixed, plane_filter, bias, border, padding, stride, dilation, output_shape, 0)
