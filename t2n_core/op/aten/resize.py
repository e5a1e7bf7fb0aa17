"""Resizing, axis by axis: which elements an output element is computed from, and with what weights.

Coordinates are computed in float32, as PyTorch does, since that decides which element is nearest. Where sizes are
dynamic, the same formulas are written into the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from t2n_core.nnef.emitter import Emitter, Expected, Operand
from t2n_core.nnef.graph import FLOAT32, INT64, Value
from t2n_core.nnef.sizes.dims import Dim, Shape, as_dim, at_most, product, same
from t2n_core.op.aten.antialiased import resize_antialiased
from t2n_core.op.aten.index import gather_axis
from t2n_core.op.aten.resize_axis import SINGLE, Axis
from t2n_core.op.option_effects import use_option
from t2n_core.op.promote import widen_float16
from t2n_core.op.registry import op
from t2n_core.op.weights import constant_values

CUBIC = -0.75
"""The `A` of the cubic convolution that PyTorch uses."""


# ----------------------------------------------------------------------------------- computed at export or in the graph
class ConstantArithmetic:
    """Arithmetic on a vector that is known at export."""

    def __init__(self, g: Emitter, axis: Axis) -> None:
        self.g, self.axis = g, axis
        assert isinstance(axis.size, int)
        self.index: Any = np.arange(axis.size, dtype=SINGLE)

    def mul(self, a: Any, b: Any) -> Any:
        return (a * SINGLE(b)).astype(SINGLE)

    def add(self, a: Any, b: Any) -> Any:
        return (a + SINGLE(b)).astype(SINGLE) if not isinstance(b, np.ndarray) else (a + b).astype(SINGLE)

    def sub(self, a: Any, b: Any) -> Any:
        return (a - b).astype(SINGLE)

    def floor(self, a: Any) -> Any:
        return np.floor(a)

    def clamp(self, a: Any) -> Any:
        """Return `a` clamped to the axis, as an index."""
        assert isinstance(self.axis.extent, int)
        return self.g.constant(np.clip(a, 0, self.axis.extent - 1).astype(np.int64))

    def positive(self, a: Any) -> Any:
        return np.maximum(a, SINGLE(0))

    def value(self, a: Any) -> Value:
        return self.g.constant(np.asarray(a, dtype=SINGLE))


class GraphArithmetic:
    """The same arithmetic, written into the graph."""

    def __init__(self, g: Emitter, axis: Axis) -> None:
        self.g, self.axis = g, axis
        self.index: Any = g.cast(g.positions(axis.size), FLOAT32)

    def mul(self, a: Any, b: Operand) -> Any:
        return self.g.mul(a, _operand(b))

    def add(self, a: Any, b: Operand) -> Any:
        return self.g.add(a, _operand(b))

    def sub(self, a: Any, b: Any) -> Any:
        return self.g.sub(a, b)

    def floor(self, a: Any) -> Any:
        return self.g.floor(a)

    def clamp(self, a: Any) -> Any:
        index = self.g.max(self.g.cast(a, INT64), 0)
        return self.g.min(index, self.g.size(as_dim(self.axis.extent - 1), INT64))

    def positive(self, a: Any) -> Any:
        return self.g.max(a, 0.0)

    def value(self, a: Any) -> Value:
        value: Value = a
        return value


def _operand(number: Any) -> Any:
    return float(number) if isinstance(number, np.floating) else number


def _arithmetic(g: Emitter, axis: Axis, step: Any = None) -> Any:
    is_constant = axis.is_static() and not isinstance(step, Value)
    return ConstantArithmetic(g, axis) if is_constant else GraphArithmetic(g, axis)


# ------------------------------------------------------------------------------------------------------------- one axis
def _nearest(g: Emitter, value: Value, axis: Axis, exact: bool) -> Value:
    """Return the element at floor(i * step), or at floor((i + 1/2) * step)."""
    times = axis.factor
    if times == 1:
        return value
    if times:
        wide = g.unsqueeze(value, axes=[axis.place + 1])
        shape = (*value.shape[: axis.place + 1], times, *value.shape[axis.place + 1 :])
        return g.reshape_to(
            g.expand(wide, shape), [*value.shape[: axis.place], axis.size, *value.shape[axis.place + 1 :]]
        )
    doubled = axis.scale is not None and axis.scale > 2
    step = axis.step_or_copy(g, 2 if doubled else 1)
    do = _arithmetic(g, axis, step)
    where = do.add(do.index, 0.5) if exact else do.index
    return gather_axis(g, value, do.clamp(do.floor(do.mul(where, step))), axis.place)


def _source(do: Any, step: Any, align_corners: bool) -> Any:
    """Return the coordinates of the output elements, counted in input elements."""
    if align_corners:
        return do.mul(do.index, step)
    return do.add(do.mul(do.add(do.index, 0.5), step), -0.5)


def _weighted_sum(g: Emitter, value: Value, axis: Axis, parts: list[tuple[Any, Value]]) -> Value:
    """Return the sum over (index, weight) of elements along an axis.

    Along an axis of fixed size that is a product with a matrix, as fast as other products: a gather reads one element
    after the other. An element that is not finite then is one factor of all results, and reaches the whole axis.
    """
    is_short = axis.is_static() and axis.extent <= g.gather_cost and not g.options.streaming
    if is_short and not use_option(g, "keep_nan"):
        return _product_with_weights(g, value, axis, parts)
    total: Value | None = None
    for index, weight in parts:
        shape: list[Dim] = [1] * value.rank
        shape[axis.place] = axis.size
        piece = gather_axis(g, value, index, axis.place)
        part = g.mul(piece, g.cast(g.reshape_to(weight, shape), value.dtype))
        total = part if total is None else g.add(total, part)
    assert total is not None
    return total


def _product_with_weights(g: Emitter, value: Value, axis: Axis, parts: list[tuple[Any, Value]]) -> Value:
    """Return the same sum over constant indices and weights as a product with a matrix [size, extent]."""
    assert isinstance(axis.extent, int)
    assert isinstance(axis.size, int)
    matrix = np.zeros((axis.size, axis.extent), SINGLE)
    for index, weight in parts:
        inputs, shares = constant_values(index), constant_values(weight)
        assert inputs is not None
        assert shares is not None
        np.add.at(matrix, (np.arange(axis.size), inputs), shares)
    weights = g.constant(matrix.astype(value.dtype))
    if axis.place == value.rank - 1:
        return g.stacked_product(value, weights)
    inside = value.shape[axis.place + 1 :]
    rows = g.reshape_to(value, [*value.shape[: axis.place + 1], product(inside)])
    out = g.matmul(g.lift(weights, rows.rank), rows)
    return g.reshape_to(out, [*value.shape[: axis.place], axis.size, *inside])


def _linear(g: Emitter, value: Value, axis: Axis, align_corners: bool) -> Value:
    if same(axis.extent, axis.size):
        return value
    step = axis.step(g, True) if align_corners else replace(axis, copies=True).step_or_copy(g, 1)
    do = _arithmetic(g, axis, step)
    source = do.positive(_source(do, step, align_corners))
    low = do.floor(source)
    share = do.sub(source, low)
    rest = do.add(do.mul(share, -1.0), 1.0)
    parts = [(do.clamp(low), do.value(rest)), (do.clamp(do.add(low, 1.0)), do.value(share))]
    return _weighted_sum(g, value, axis, parts)


def _cubic(g: Emitter, value: Value, axis: Axis, align_corners: bool) -> Value:
    """Interpolate by a cubic over four neighbours; the edge elements are repeated outside."""
    do = _arithmetic(g, axis)
    source = _source(do, axis.step(g, align_corners), align_corners)
    low = do.floor(source)
    t = do.sub(source, low)
    parts = []
    for offset in (-1, 0, 1, 2):
        x = do.add(do.mul(t, -1.0), float(offset)) if offset > 0 else do.add(t, float(-offset))
        parts.append((do.clamp(do.add(low, float(offset))), do.value(_kernel(do, x, abs(offset - 0.5) > 1))))
    return _weighted_sum(g, value, axis, parts)


def _kernel(do: Any, x: Any, outer: bool) -> Any:
    """((A + 2) x - (A + 3)) x^2 + 1 up to 1; ((A x - 5 A) x + 8 A) x - 4 A beyond."""
    if not outer:
        inner = do.add(do.mul(x, CUBIC + 2), -(CUBIC + 3))
        return do.add(_times(do, _times(do, inner, x), x), 1.0)
    outside = do.add(_times(do, do.add(do.mul(x, CUBIC), -5 * CUBIC), x), 8 * CUBIC)
    return do.add(_times(do, outside, x), -4 * CUBIC)


def _times(do: Any, a: Any, b: Any) -> Any:
    return (a * b).astype(SINGLE) if isinstance(a, np.ndarray) else do.mul(a, b)


# ------------------------------------------------------------------------------------------------------------ the rules
Method = Callable[[Emitter, Value, Axis, bool], Value]
"""(g, value, axis, align_corners)."""


def _resize(
    g: Emitter, value: Value, count: int, method: Method, scales: Sequence[float | None] | None, corners: bool = False
) -> Value:
    """Resize the last `count` axes by a method; float16 is computed in float32."""
    if value.dtype.kind != "f" and method not in (_plain, _exact):
        raise g.fail(
            f"PyTorch interpolates {value.dtype} in fixed point and rounds after each axis: not supported in NNEF",
            hint="convert the image with .float() first",
        )
    factors = [None] * count if scales is None else list(scales)
    first = value.rank - count
    out = widen_float16(g, value)
    copies = method is _plain and count == 2 and _asks_for_multiples(g, g.output.shape[first:])
    axes = [
        Axis(first + i, value.shape[first + i], g.output.shape[first + i], scale, copies)
        for i, scale in enumerate(factors)
    ]
    if g.options.upsample_with_debox and method in (_plain, _exact) and g.spec.has("debox"):
        spread = _spread(g, out, axes)
        if spread is not None and use_option(g, "upsample_with_debox"):
            return g.cast(spread, value.dtype)
    if g.has_upsample and method in (_plain, _exact) and out.dtype == FLOAT32 and all(axis.factor for axis in axes):
        return g.cast(_upsample(g, out, axes), value.dtype)
    for axis in axes:
        out = method(g, out, axis, corners)
    return g.cast(out, value.dtype)


def _upsample(g: Emitter, value: Value, axes: Sequence[Axis]) -> Value:
    """Repeat each element of the last axes as often as their factors."""
    scales = np.array([1] * axes[0].place + [axis.factor for axis in axes], SINGLE)
    return g.tract_core_resize(
        value,
        scales=g.constant(scales),
        coord_transformer="asymmetric",
        interpolator="nearest",
        nearest_mode="floor",
        out=Expected(g.output.shape, value.dtype),
    )


def _asks_for_multiples(g: Emitter, sizes: Shape) -> Value | bool:
    """Return whether PyTorch uses its kernel for small images whose channels are not last in memory."""
    total = as_dim(sum(sizes))
    if isinstance(total, int) or at_most(_SMALL + 1, total):
        return isinstance(total, int) and total <= _SMALL
    return g.le(g.size(total, INT64), g.constant(np.array(_SMALL, dtype=np.int64)))


_SMALL = 128
"""Rows and columns of a small image together."""


def _spread(g: Emitter, value: Value, axes: Sequence[Axis]) -> Value | None:
    """Spread each element over its own window, if all factors are integers: `debox` with stride = size does that."""
    window = [*[1] * axes[0].place, *(axis.factor for axis in axes)]
    if value.rank < 3 or 0 in window:
        return None
    none = [(0, 0)] * value.rank
    return g.debox(
        value,
        size=window,
        border="constant",
        padding=none,
        stride=window,
        dilation=[1] * value.rank,
        normalize=False,
        out=Expected(g.output.shape, value.dtype),
    )


def _plain(g: Emitter, value: Value, axis: Axis, align_corners: bool) -> Value:
    return _nearest(g, value, axis, exact=False)


def _exact(g: Emitter, value: Value, axis: Axis, align_corners: bool) -> Value:
    return _nearest(g, value, axis, exact=True)


def _smooth(name: str) -> Method:
    return lambda g, value, axis, corners: resize_antialiased(g, value, axis, name, corners)


def _register(count: int, name: str, method: Method) -> None:
    """Register both overloads of a method that has no corners to align."""

    @op(f"aten::{name}{count}d.vec", implied=("output_size",))
    def by_factors(g: Emitter, input: Value, scale_factors: Sequence[float] | None) -> Value:
        return _resize(g, input, count, method, scale_factors)

    if count == 1:

        @op(f"aten::{name}1d", implied=("output_size",))
        def by_size_1d(g: Emitter, self: Value, scales: float | None = None) -> Value:
            return _resize(g, self, 1, method, [scales])

    elif count == 2:

        @op(f"aten::{name}2d", implied=("output_size",))
        def by_size_2d(g: Emitter, self: Value, scales_h: float | None = None, scales_w: float | None = None) -> Value:
            return _resize(g, self, 2, method, [scales_h, scales_w])

    else:

        @op(f"aten::{name}3d", implied=("output_size",))
        def by_size_3d(
            g: Emitter,
            self: Value,
            scales_d: float | None = None,
            scales_h: float | None = None,
            scales_w: float | None = None,
        ) -> Value:
            return _resize(g, self, 3, method, [scales_d, scales_h, scales_w])


def _register_corners(count: int, name: str, method: Method) -> None:
    """Register both overloads of a method that may align corners."""

    @op(f"aten::{name}.vec", implied=("output_size",))
    def by_factors(g: Emitter, input: Value, align_corners: bool, scale_factors: Sequence[float] | None) -> Value:
        return _resize(g, input, count, method, scale_factors, align_corners)

    if count == 1:

        @op(f"aten::{name}", implied=("output_size",))
        def by_size_1d(g: Emitter, self: Value, align_corners: bool, scales: float | None = None) -> Value:
            return _resize(g, self, 1, method, [scales], align_corners)

    elif count == 2:

        @op(f"aten::{name}", implied=("output_size",))
        def by_size_2d(
            g: Emitter,
            self: Value,
            align_corners: bool,
            scales_h: float | None = None,
            scales_w: float | None = None,
        ) -> Value:
            return _resize(g, self, 2, method, [scales_h, scales_w], align_corners)

    else:

        @op(f"aten::{name}", implied=("output_size",))
        def by_size_3d(
            g: Emitter,
            self: Value,
            align_corners: bool,
            scales_d: float | None = None,
            scales_h: float | None = None,
            scales_w: float | None = None,
        ) -> Value:
            return _resize(g, self, 3, method, [scales_d, scales_h, scales_w], align_corners)


for _count in (1, 2, 3):
    _register(_count, "upsample_nearest", _plain)
    _register(_count, "_upsample_nearest_exact", _exact)
_register_corners(1, "upsample_linear1d", _linear)
_register_corners(2, "upsample_bilinear2d", _linear)
_register_corners(3, "upsample_trilinear3d", _linear)
_register_corners(2, "upsample_bicubic2d", _cubic)
_register_corners(2, "_upsample_bilinear2d_aa", _smooth("bilinear"))
_register_corners(2, "_upsample_bicubic2d_aa", _smooth("bicubic"))
