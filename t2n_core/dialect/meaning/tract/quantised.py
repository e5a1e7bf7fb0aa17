"""Products and convolutions of quantised integers, and their requantisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from t2n_core.dialect.arrays import Array, data_type
from t2n_core.dialect.meaning.tract.linear import legacy_axes, sum_of_products
from t2n_core.dialect.registry import defines
from t2n_core.errors import SpecError


def requantise(sums: Array, scale: Array, zero_point: Array, kind: np.dtype[Any]) -> Array:
    """Return round(sums * scale) + zero_point, held to the bounds of a type of 8 bits.

    The product is rounded to nearest, ties to even. A result in 32 bits has no bounds.
    """
    rounded = np.rint(sums.astype(np.float64) * scale) + np.asarray(zero_point, dtype=np.float64)
    if kind.itemsize == 1:
        bounds = np.iinfo(kind)
        rounded = np.clip(rounded, bounds.min, bounds.max)
    return rounded.astype(np.int64).astype(kind)


def _centred(values: Array, zero_point: Array | int) -> Array:
    return values.astype(np.int64) - np.asarray(zero_point).astype(np.int64)


def _scale(a: Array | float, b: Array | float, c: Array | float) -> Array:
    return np.asarray(a, dtype=np.float64) * np.asarray(b, dtype=np.float64) / np.asarray(c, dtype=np.float64)


@defines("tract_core_qmatmul", result="computed", raw=True)
def qmatmul(
    A: Array,
    B: Array,
    bias: Array | int = 0,
    *,
    axes: Sequence[int],
    a0: Array | int = 0,
    a_scale: Array | float = 1.0,
    b0: Array | int = 0,
    b_scale: Array | float = 1.0,
    c0: Array | int = 0,
    c_scale: Array | float = 1.0,
    output_type: str,
) -> Array:
    """Return the requantised matrix product of two tensors of 8-bit integers.

    Formula: round((sum over k of (A - a0) * (B - b0) + bias) * a_scale * b_scale / c_scale) + c0, held to the bounds of
    `output_type`; ties are rounded to even. Shapes and axes: as for `tract_core_matmul`; the bias is broadcast.
    Domain: int8 and uint8; the sum is an int32.
    Special values: an `output_type` of 32 bits, `i32`, has no bounds to hold to.
    Source: ONNX QLinearMatMul-10; tract nnef/src/ops/core/qmatmul.rs, core/src/ops/einsum/einsum_matmul.rs.
    """
    expr = legacy_axes(A.ndim, axes, "tract_core_qmatmul")
    sums = sum_of_products([_centred(A, a0), _centred(B, b0)], expr, "tract_core_qmatmul") + np.asarray(bias)
    return requantise(sums, _scale(a_scale, b_scale, c_scale), np.asarray(c0), data_type(output_type))


@defines("tract_core_einsum_q", result="computed", raw=True)
def einsum_q(
    inputs: Sequence[Array],
    expr: str,
    acc: str,
    output: str,
    bias: Array | int = 0,
    *,
    a0: Array | int,
    a_scale: Array | float,
    b0: Array | int,
    b_scale: Array | float,
    c0: Array | int,
    c_scale: Array | float,
) -> Array:
    """Return the requantised sum of products of two tensors of 8-bit integers.

    Formula: round((sum of (a - a0) * (b - b0) + bias) * a_scale * b_scale / c_scale) + c0, held to the bounds of
    `output`; ties are rounded to even. The expression has nine operands on its left side: the two tensors, the bias,
    and the zero points and scales in the order of the arguments, whose letters say along which axes they vary.
    Domain: int8 and uint8; `acc` is `i32`.
    Source: tract nnef/src/ops/core/einsum.rs, core/src/ops/einsum/einsum_matmul.rs.
    """
    left, _, right = expr.replace(" ", "").partition("->")
    letters = left.split(",")
    if len(letters) != 9:
        raise SpecError(f"nine operands are needed, not {len(letters)}", op="tract_core_einsum_q")
    a, b = inputs

    def along(letters_of: str, values: Array | float, axes: str) -> Array:
        """Return values whose axes are named by letters, broadcast along the axes of another tensor."""
        array = np.asarray(values)
        if not array.ndim:
            return array
        order = sorted(range(array.ndim), key=lambda at: axes.index(letters_of[at]))
        extents = {letters_of[at]: array.shape[at] for at in range(array.ndim)}
        return np.transpose(array, order).reshape([extents.get(letter, 1) for letter in axes])

    def centred(values: Array, axes: str, zero_point: Array | int, letters_of: str) -> tuple[Array, str]:
        """Return values less their zero point, and their letters plus the letters that only the zero point has."""
        of_both = axes + "".join(letter for letter in letters_of if letter not in axes)
        spread = np.reshape(values, (*values.shape, *[1] * (len(of_both) - len(axes))))
        return _centred(spread, along(letters_of, np.asarray(zero_point), of_both)), of_both

    operands = [centred(a, letters[0], a0, letters[3]), centred(b, letters[1], b0, letters[5])]
    expression = f"{operands[0][1]},{operands[1][1]}->{right}"
    sums = sum_of_products([values for values, _ in operands], expression, "tract_core_einsum_q")
    sums = sums + along(letters[2], np.asarray(bias), right)
    scale = along(letters[4], a_scale, right) * along(letters[6], b_scale, right) / along(letters[8], c_scale, right)
    return requantise(sums, scale.astype(np.float64), along(letters[7], np.asarray(c0), right), data_type(output))


@defines("tract_core_qconv", result="computed", raw=True)
def qconv(
    input: Array,
    filter: Array,
    bias: Array | int = 0,
    *,
    group: int,
    dilation: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[Sequence[int]],
    border: str,
    a0: Array | int = 0,
    a_scale: Array | float = 1.0,
    b0: Array | int = 0,
    b_scale: Array | float = 1.0,
    c0: Array | int = 0,
    c_scale: Array | float = 1.0,
    output_dt: str = "",
) -> Array:
    """Return the requantised convolution of 8-bit integers.

    Formula: round((sum of (input - b0) * (filter - a0) + bias) * a_scale * b_scale / c_scale) + c0, held to the bounds
    of the result: `a` is the filter, `b` the input. Halves are rounded to even. Shapes: input [N, C, spatial..], filter
    [O, C / group, spatial..], bias [O] or one number; the spatial axes are as in a convolution with `padding` (before,
    after) of b0, the zero point; without `padding`, they are padded to keep ceil(extent / stride), the odd element
    after. Domain: int8 and uint8; the border is `constant`; group 0 is the number of filters.
    The result has the type `output_dt`, or the input's.
    Source: ONNX QLinearConv-10; tract nnef/src/ops/core/qconv.rs, core/src/ops/cnn/conv/conv.rs.
    """
    if border != "constant":
        raise SpecError(f"the border is {border!r}, not `constant`", op="tract_core_qconv")
    groups, spatial = int(group) or filter.shape[0], input.ndim - 2
    steps, spread = list(stride) or [1] * spatial, list(dilation) or [1] * spatial
    reach = [(extent - 1) * by + 1 for extent, by in zip(filter.shape[2:], spread, strict=True)]
    around = [(int(before), int(after)) for before, after in padding]
    if not around:
        for extent, step, width in zip(input.shape[2:], steps, reach, strict=True):
            total = max((math.ceil(extent / step) - 1) * step + width - extent, 0)
            around.append((total // 2, total - total // 2))
    padded = np.pad(_centred(input, b0), [(0, 0), (0, 0), *around])
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=tuple(range(2, 2 + spatial)))
    every = tuple(slice(None, None, step) for step in steps)
    taps = tuple(slice(None, None, by) for by in spread)
    windows = windows[(slice(None), slice(None), *every, *taps)]
    kernel = _centred(filter, np.asarray(a0).reshape([-1, *[1] * (filter.ndim - 1)]))
    size = filter.shape[0] // groups
    group_sums = [
        np.tensordot(
            windows[:, at * filter.shape[1] : (at + 1) * filter.shape[1]],
            kernel[at * size : (at + 1) * size],
            axes=([1, *range(2 + spatial, 2 + 2 * spatial)], list(range(1, 2 + spatial))),
        )
        for at in range(groups)
    ]
    sums = np.moveaxis(np.concatenate(group_sums, axis=-1), -1, 1)
    offset, *scales = (np.asarray(value).reshape([-1, *[1] * spatial]) for value in (bias, a_scale, b_scale, c_scale))
    sums = sums + offset.astype(np.int64)
    scale = _scale(*scales)
    return requantise(sums, scale, np.asarray(c0).reshape(()), data_type(output_dt) if output_dt else input.dtype)
