"""Padding; negative amounts crop."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import BOOL, Value
from t2n_core.nnef.sizes.dims import Dim, as_dim, at_most, is_static, maximum
from t2n_core.op.aten.shape import reverse
from t2n_core.op.promote import Tensorlike, tensor
from t2n_core.op.registry import op

REFLECTION = [f"aten::reflection_pad{count}d" for count in (1, 2, 3)]
REPLICATION = [f"aten::replication_pad{count}d" for count in (1, 2, 3)]
Amounts = dict[int, tuple[Dim, Dim]]
Side = Callable[[Emitter, Value, int, Dim, bool], Value]
"""(emitter, value, axis, amount, in front) -> the elements that pad one side of an axis."""


def _amounts(value: Value, pad: Sequence[Dim]) -> Amounts:
    """Return {axis: (before, after)}; PyTorch counts axes from the last."""
    pairs = zip(pad[::2], pad[1::2], strict=True)
    return {value.rank - 1 - i: pair for i, pair in enumerate(pairs) if pair != (0, 0)}


def _split_amount(amount: Dim) -> tuple[Dim, Dim]:
    """Split an amount into the elements to crop and those to add; one of the two is 0 at every size."""
    if at_most(0, amount):
        return 0, amount
    if at_most(amount, 0):
        return as_dim(-amount), 0
    return maximum(0, as_dim(-amount)), maximum(0, amount)


def _crop(g: Emitter, value: Value, amounts: Amounts) -> tuple[Value, Amounts]:
    """Return `value` cropped by the negative amounts, and the positive amounts."""
    rest: Amounts = {}
    for axis, pair in amounts.items():
        (begin, before), (end, after) = map(_split_amount, pair)
        value = g.take(value, axis, begin, as_dim(value.shape[axis] - end))
        rest[axis] = before, after
    return value, {axis: pair for axis, pair in rest.items() if pair != (0, 0)}


def _pad_operation(g: Emitter, value: Value, amounts: Amounts, border: str, number: float = 0.0) -> Value:
    """Write one `pad`, which takes integers as amounts, and no tensor of bool."""
    if not amounts:
        return value
    if value.dtype == BOOL:
        return g.cast(_pad_operation(g, g.cast(value, g.truth_dtype), amounts, border, number), BOOL)
    padding = [amounts.get(axis, (0, 0)) for axis in range(value.rank)]
    return g.pad(value, padding=padding, border=border, value=number)


@op("aten::constant_pad_nd")
def constant_pad_nd(g: Emitter, self: Value, pad: Sequence[Dim], value: Tensorlike = 0) -> Value:
    return pad_constant(g, self, _amounts(self, pad), value)


def pad_constant(g: Emitter, value: Value, amounts: Amounts, number: Tensorlike = 0) -> Value:
    """Return `value` padded with a scalar; negative amounts crop."""
    inner, rest = _crop(g, value, amounts)
    plain = all(isinstance(amount, int) for pair in rest.values() for amount in pair)
    if plain and value.dtype == np.float32 and isinstance(number, bool | int | float):
        scalar = float(np.float32(number))
        if math.isfinite(scalar):
            return _pad_operation(g, inner, rest, "constant", scalar)
    return _by_concat(g, inner, rest, functools.partial(_fill, tensor(g, number, value.dtype)))


def _by_concat(g: Emitter, value: Value, amounts: Amounts, side: Side) -> Value:
    """Pad by `concat` where `pad` does not support it: infinities, dynamic amounts and, before 0.20, other dtypes."""
    for axis, (before, after) in amounts.items():
        head = [side(g, value, axis, before, True)] if before != 0 else []
        tail = [side(g, value, axis, after, False)] if after != 0 else []
        value = g.concat([*head, value, *tail], axis=axis)
    return value


def _fill(filler: Value, g: Emitter, value: Value, axis: int, amount: Dim, in_front: bool) -> Value:
    return _expand_axis(g, g.lift(filler, value.rank), value, axis, amount)


def _replicate(g: Emitter, value: Value, axis: int, amount: Dim, in_front: bool) -> Value:
    edge = 0 if in_front else as_dim(value.shape[axis] - 1)
    return _expand_axis(g, g.take(value, axis, edge, as_dim(edge + 1)), value, axis, amount)


def _reflect(g: Emitter, value: Value, axis: int, amount: Dim, in_front: bool) -> Value:
    last = as_dim(value.shape[axis] - 1)
    begin, end = (1, as_dim(amount + 1)) if in_front else (as_dim(last - amount), last)
    return reverse(g, g.take(value, axis, begin, end), axis)


def _wrap(g: Emitter, value: Value, axis: int, amount: Dim, in_front: bool) -> Value:
    size = value.shape[axis]
    return g.take(value, axis, as_dim(size - amount), size) if in_front else g.take(value, axis, 0, amount)


def _expand_axis(g: Emitter, part: Value, value: Value, axis: int, amount: Dim) -> Value:
    """Return `part` with the shape of `value`, except for one axis."""
    return g.expand(part, (*value.shape[:axis], amount, *value.shape[axis + 1 :]))


def _pad_from_elements(g: Emitter, value: Value, pad: Sequence[Dim], border: str) -> Value:
    """Pad with elements of the tensor. Negative amounts crop afterwards: the padding comes from the whole tensor."""
    amounts = _amounts(value, pad)
    more = {axis: _positive(pair) for axis, pair in amounts.items() if _positive(pair) != (0, 0)}
    fixed = {axis: pair for axis, pair in more.items() if is_static(pair)}
    less = {axis: _negative(pair) for axis, pair in amounts.items()}
    value = _pad_operation(g, value, fixed, border)
    dynamic = {axis: pair for axis, pair in more.items() if axis not in fixed}
    return _crop(g, _by_concat(g, value, dynamic, _reflect if border == "reflect" else _replicate), less)[0]


def _positive(pair: tuple[Dim, Dim]) -> tuple[Dim, Dim]:
    return _split_amount(pair[0])[1], _split_amount(pair[1])[1]


def _negative(pair: tuple[Dim, Dim]) -> tuple[Dim, Dim]:
    return as_dim(-_split_amount(pair[0])[0]), as_dim(-_split_amount(pair[1])[0])


@op(*REFLECTION)
def reflection_pad(g: Emitter, self: Value, padding: Sequence[Dim]) -> Value:
    """Mirror at the edge elements, which are not repeated."""
    return _pad_from_elements(g, self, padding, "reflect")


@op(*REPLICATION, target="tract")
def replication_pad_tract(g: Emitter, self: Value, padding: Sequence[Dim]) -> Value:
    """Repeat the edge elements; tract names this border differently."""
    return _pad_from_elements(g, self, padding, "replicated")


@op(*REPLICATION, target="khronos")
def replication_pad_khronos(g: Emitter, self: Value, padding: Sequence[Dim]) -> Value:
    return _pad_from_elements(g, self, padding, "replicate")


@op("aten::_pad_circular")
def pad_circular(g: Emitter, self: Value, pad: Sequence[Dim]) -> Value:
    """Continue each axis with the elements of its other end."""
    value = self
    for axis, pair in _amounts(self, pad).items():
        value = _by_concat(g, *_crop(g, value, {axis: pair}), _wrap)
    return value


@op("aten::pad", target="tract")
def pad_tract(g: Emitter, self: Value, pad: Sequence[Dim], mode: str = "constant", value: float | None = None) -> Value:
    if mode == "replicate":
        return replication_pad_tract(g, self, pad)
    return _pad(g, self, pad, mode, value)


@op("aten::pad", target="khronos")
def pad_khronos(
    g: Emitter, self: Value, pad: Sequence[Dim], mode: str = "constant", value: float | None = None
) -> Value:
    if mode == "replicate":
        return replication_pad_khronos(g, self, pad)
    return _pad(g, self, pad, mode, value)


def _pad(g: Emitter, self_: Value, pad: Sequence[Dim], mode: str, value: float | None) -> Value:
    if mode == "constant":
        return constant_pad_nd(g, self_, pad, 0 if value is None else value)
    return _pad_from_elements(g, self_, pad, "reflect") if mode == "reflect" else pad_circular(g, self_, pad)
