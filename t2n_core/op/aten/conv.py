"""Convolutions and transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import Value
from t2n_core.nnef.sizes.dims import Dim, as_dim, floor_div, is_static, product
from t2n_core.op.aten.conv_windows import by_windows
from t2n_core.op.aten.pad import pad_constant
from t2n_core.op.registry import op
from t2n_core.op.weights import constant_values, row, with_values

Amounts = Sequence[tuple[Dim, Dim]]
MOST_SHIFTS = 64
"""Longest window for which a depthwise convolution is written as a sum over its elements."""


def per_axis(value: int | Sequence[int], count: int) -> list[int]:
    """Return one value per spatial axis: `3`, `[3]` and `[3, 3]` mean the same."""
    values = [value] if isinstance(value, int) else list(value)
    return values * count if len(values) == 1 else values


@op("aten::conv1d", "aten::conv2d", "aten::conv3d")
def conv(
    g: Emitter,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Value:
    """Return the cross-correlation; `same` pads the end by one more where the total is odd, as PyTorch does."""
    return _conv(g, input, weight, bias, stride, padding, dilation, groups)


def _conv(
    g: Emitter,
    value: Value,
    weight: Value,
    bias: Value | None,
    stride: int | Sequence[int],
    padding: str | int | Sequence[int],
    dilation: int | Sequence[int],
    groups: int,
) -> Value:
    if value.rank == weight.rank - 1:
        batched = g.unsqueeze(value, axes=[0])
        return g.squeeze(_conv(g, batched, weight, bias, stride, padding, dilation, groups), axes=[0])
    _refuse_integers(g, value)
    count = weight.rank - 2
    spread, step = per_axis(dilation, count), per_axis(stride, count)
    sizes = [as_dim(e * (k - 1) + 1) for e, k in zip(spread, weight.shape[2:], strict=True)]
    around: Amounts
    if isinstance(padding, str):
        around = [(floor_div(as_dim(f - 1), 2), floor_div(f, 2)) if padding == "same" else (0, 0) for f in sizes]
    else:
        around = [(p, p) for p in per_axis(padding, count)]
    if weight.weight is None:
        return _add_bias(g, by_windows(g, _pad_spatial(g, value, around), weight, step, spread, groups), bias)
    fields, borders = list(map(int, sizes)), [(int(p), int(q)) for p, q in around]
    if not g.options.streaming and _is_slow(value, weight, step, groups):
        return _add_bias(g, _by_shifts(g, _pad_spatial(g, value, borders), weight, spread), bias)
    if any(max(pair) >= f for pair, f in zip(borders, fields, strict=True)):
        # a window that covers nothing but padding aborts old engines
        value, borders = _pad_spatial(g, value, borders), [(0, 0)] * count
    of_bias, late = _bias(g, bias)
    out = g.conv(value, weight, **of_bias, padding=borders, stride=step, dilation=spread, groups=groups)
    return _add_bias(g, out, late)


def _is_slow(value: Value, weight: Value, stride: Sequence[int], groups: int) -> bool:
    """Return True for a depthwise convolution of stride 1 and dynamic size with a short window over the last axis.

    Windows over other axes are left to the engine: it is as fast then, and loads a net in a fraction of the time that
    it needs for the many slices.
    """
    if groups == 1 or weight.shape[:2] != (groups, 1) or any(s != 1 for s in stride):
        return False
    *others, last = weight.shape[2:]
    return not is_static(value.shape[2:]) and product(others) == 1 and int(last) <= MOST_SHIFTS


def _by_shifts(g: Emitter, value: Value, weight: Value, dilation: Sequence[int]) -> Value:
    """Write a depthwise convolution as the sum over its window of the shifted input times one weight per channel.

    The engine has an operator for depthwise convolutions, but not over axes of dynamic size: there it makes one matrix
    product for each channel, of a matrix with one row.
    """
    axis, size, step = value.rank - 1, int(weight.shape[-1]), dilation[-1]
    extent = value.shape[axis] - step * (size - 1)
    taps = g.reshape_to(weight, [1, weight.shape[0], *weight.shape[2:]])
    total: Value | None = None
    for index in range(size):
        shifted = g.take(value, axis, index * step, as_dim(index * step + extent))
        scaled = g.mul(shifted, g.take(taps, axis, index, index + 1))
        total = scaled if total is None else g.add(total, scaled)
    assert total is not None
    return total


def _refuse_integers(g: Emitter, value: Value) -> None:
    if value.dtype.kind != "f":
        raise g.fail(f"a convolution of {value.dtype} cannot be expressed in NNEF")


def _bias(g: Emitter, bias: Value | None) -> tuple[dict[str, Value], Value | None]:
    """Return a constant bias as an argument of the operation, any other as a value to add: engines need constants."""
    if bias is None or bias.weight is None:
        return {}, bias
    return {"bias": row(g, bias, 2)}, None


def _add_bias(g: Emitter, out: Value, bias: Value | None) -> Value:
    return out if bias is None else g.add(out, row(g, bias, out.rank))


def _pad_spatial(g: Emitter, value: Value, borders: Amounts) -> Value:
    """Return `value` with zeros around its spatial axes; a negative border crops."""
    return pad_constant(g, value, {axis: pair for axis, pair in enumerate(borders, start=2) if pair != (0, 0)})


@op("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d", target="tract")
def conv_transpose_tract(
    g: Emitter,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Value:
    """Transposed convolution; tract takes the filter as [out, in/groups, k…]."""
    swapped = _swap_channels(g, weight, groups)
    return _conv_transpose(g, input, swapped, bias, stride, padding, output_padding, groups, dilation, swapped)


@op("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d", target="khronos")
def conv_transpose_khronos(
    g: Emitter,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Value:
    """Transposed convolution; the standard takes the filter as PyTorch has it, [in, out/groups, k…]."""
    return _conv_transpose(g, input, weight, bias, stride, padding, output_padding, groups, dilation)


def _swap_channels(g: Emitter, weight: Value, groups: int) -> Value:
    """Return a filter [in, out/groups, k…] as [out, in/groups, k…]."""
    inner, outer, *sizes = weight.shape
    split = g.reshape_to(weight, [groups, floor_div(inner, groups), outer, *sizes])
    order = [0, 2, 1, *range(3, split.rank)]
    shape = [as_dim(outer * groups), floor_div(inner, groups), *sizes]
    out = g.reshape_to(g.permute(split, order), shape)
    if weight.weight is None:
        return out

    def elements() -> NDArray[Any]:
        values = constant_values(weight)
        assert values is not None
        return values.reshape([int(n) for n in split.shape]).transpose(order).reshape([int(n) for n in shape])

    return with_values(out, elements)


def _conv_transpose(
    g: Emitter,
    value: Value,
    filters: Value,
    bias: Value | None,
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    output_padding: int | Sequence[int],
    groups: int,
    dilation: int | Sequence[int],
    swapped: Value | None = None,
) -> Value:
    """Write a transposed convolution. `output_padding` reduces the crop at the end; beyond the crop, it adds zeros."""
    _refuse_integers(g, value)
    if value.rank == filters.rank - 1:
        batched = g.unsqueeze(value, axes=[0])
        result = _conv_transpose(g, batched, filters, bias, stride, padding, output_padding, groups, dilation, swapped)
        return g.squeeze(result, axes=[0])
    count = filters.rank - 2
    step, spread, cut = per_axis(stride, count), per_axis(dilation, count), per_axis(padding, count)
    more = per_axis(output_padding, count)
    if filters.weight is None:
        swapped = swapped or _swap_channels(g, filters, groups)
        full = [as_dim(e * (k - 1)) for e, k in zip(spread, filters.shape[2:], strict=True)]
        early = [p if is_static((f,)) else 0 for f, p in zip(full, cut, strict=True)]
        around = [(as_dim(f - p), as_dim(f - p + q)) for f, p, q in zip(full, early, more, strict=True)]
        spaced = _pad_spatial(g, _insert_zeros(g, value, step), around)
        result = by_windows(g, spaced, swapped, [1] * count, spread, groups, flip=True)
        return _add_bias(g, _pad_spatial(g, result, [(e - p, e - p) for e, p in zip(early, cut, strict=True)]), bias)
    if swapped is not None and groups > 1 and product(filters.shape[2:]) == 1:
        # one product per position; 0.21.8 to 0.21.10 abort on a `deconv` of groups over dynamic axes
        spaced = _insert_zeros(g, _conv(g, value, swapped, None, 1, 0, 1, groups), step)
        return _add_bias(g, _pad_spatial(g, spaced, [(-p, q - p) for p, q in zip(cut, more, strict=True)]), bias)
    borders = [(p, max(p - q, 0)) for p, q in zip(cut, more, strict=True)]
    rest = [(0, max(q - p, 0)) for p, q in zip(cut, more, strict=True)]
    of_bias, late = ({}, bias) if any(q for _, q in rest) else _bias(g, bias)
    outer = swapped.shape[0] if swapped is not None else as_dim(filters.shape[1] * groups)
    extents = [
        as_dim((extent - 1) * s + e * (k - 1) + 1 - p - q)
        for extent, s, e, k, (p, q) in zip(value.shape[2:], step, spread, filters.shape[2:], borders, strict=True)
    ]
    out = g.deconv(
        value,
        filters,
        **of_bias,
        padding=borders,
        stride=step,
        dilation=spread,
        groups=groups,
        out=Expected((value.shape[0], outer, *extents), value.dtype),
    )
    return _add_bias(g, _pad_spatial(g, out, rest), late)


def _insert_zeros(g: Emitter, value: Value, stride: Sequence[int]) -> Value:
    """Return `value` with `stride - 1` zeros between neighbours."""
    for axis, step in enumerate(stride, start=2):
        if step > 1:
            extent = value.shape[axis]
            wide = pad_constant(g, g.unsqueeze(value, axes=[axis + 1]), {axis + 1: (0, step - 1)})
            shape = [*value.shape[:axis], as_dim(extent * step), *value.shape[axis + 1 :]]
            value = g.take(g.reshape_to(wide, shape), axis, 0, as_dim((extent - 1) * step + 1))
    return value


@op("aten::convolution", "aten::_convolution", target="tract")
def convolution_tract(
    g: Emitter,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    benchmark: bool = False,
    deterministic: bool = False,
    cudnn_enabled: bool = False,
    allow_tf32: bool = False,
) -> Value:
    if transposed:
        return conv_transpose_tract(g, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv(g, input, weight, bias, stride, padding, dilation, groups)


@op("aten::convolution", "aten::_convolution", target="khronos")
def convolution_khronos(
    g: Emitter,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    benchmark: bool = False,
    deterministic: bool = False,
    cudnn_enabled: bool = False,
    allow_tf32: bool = False,
) -> Value:
    if transposed:
        return conv_transpose_khronos(g, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv(g, input, weight, bias, stride, padding, dilation, groups)
