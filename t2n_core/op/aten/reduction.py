"""Reductions over axes. float16 is summed in float32, as PyTorch does; integers exactly, in the captured dtype.

The engine's `max_reduce` starts from the lowest finite value and ignores NaN, in every version: the maximum of nothing
but -inf is -3.4e38. Extremes of floats are therefore corrected by a second reduction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import BOOL, INT64, Value
from t2n_core.nnef.sizes.dims import Dim, product
from t2n_core.op import formulas
from t2n_core.op.known_elements import least_of
from t2n_core.op.promote import as_numbers, wide_dtype, wide_input, widen_float16
from t2n_core.op.registry import op

Axes = int | Sequence[int] | None
Reduce = Callable[[Emitter, Value, list[int]], Value]


def axes_of(value: Value, dim: Axes, *, empty_is_all: bool = True) -> list[int]:
    """Return the axes that `dim` names, non-negative and sorted."""
    if dim is None or (empty_is_all and not isinstance(dim, int) and not dim):
        return list(range(value.rank))
    dims = [dim] if isinstance(dim, int) else dim
    return sorted(d % max(value.rank, 1) for d in dims) if value.rank else []


def squeeze_unless(g: Emitter, value: Value, axes: list[int], keepdim: bool) -> Value:
    return value if keepdim else g.squeeze_axes(value, axes)


def count(g: Emitter, value: Value, axes: list[int], dtype: np.dtype[Any], less: float = 0) -> Value | float:
    """Return how many elements a reduction combines, minus `less` (but not below 0), as an operand."""
    number: Dim = product(value.shape[a] for a in axes)
    if isinstance(number, int):
        return float(max(number - less, 0))
    if float(less).is_integer():
        rest: Dim = number - int(less)
        return g.max(g.size(rest, dtype), 0.0) if less else g.size(rest, dtype)
    return g.max(g.sub(g.size(number, dtype), less), 0.0)


def _reduction(g: Emitter, self: Value, dim: Axes, keepdim: bool, formula: Reduce) -> Value:
    """Write a reduction by a float formula, rounded once to the captured dtype."""
    axes = axes_of(self, dim)
    return g.cast(squeeze_unless(g, formula(g, wide_input(g, self), axes), axes, keepdim), g.output.dtype)


@op("aten::sum")
def sum(g: Emitter, self: Value, dim: Axes = None, keepdim: bool = False, dtype: Any = None) -> Value:
    if g.output.dtype == BOOL:
        return _truth(g, self, dim, keepdim, "max_reduce", True)
    return _reduction(g, self, dim, keepdim, formulas.sum_of)


@op("aten::nansum")
def nansum(g: Emitter, self: Value, dim: Axes = None, keepdim: bool = False, dtype: Any = None) -> Value:
    """Return the sum, in which NaN counts as 0."""
    if self.dtype.kind != "f":
        return sum(g, self, dim, keepdim)
    return _reduction(g, self, dim, keepdim, lambda g, x, a: formulas.sum_of(g, _without_nan(g, x), a))


def _without_nan(g: Emitter, x: Value) -> Value:
    return g.select(formulas.is_nan(g, x), 0.0, x)


def mean_of(g: Emitter, x: Value, axes: list[int]) -> Value:
    return g.div(formulas.sum_of(g, x, axes), count(g, x, axes, x.dtype)) if axes else x


@op("aten::mean")
def mean(g: Emitter, self: Value, dim: Axes = None, keepdim: bool = False, dtype: Any = None) -> Value:
    return _reduction(g, self, dim, keepdim, mean_of)


@op("aten::nanmean")
def nanmean(g: Emitter, self: Value, dim: Axes = None, keepdim: bool = False, dtype: Any = None) -> Value:
    """Return the mean of the elements that are not NaN."""

    def formula(g: Emitter, x: Value, axes: list[int]) -> Value:
        valid = formulas.sum_of(g, g.cast(g.eq(x, x), x.dtype), axes)
        return g.div(formulas.sum_of(g, _without_nan(g, x), axes), valid)

    return _reduction(g, self, dim, keepdim, formula)


@op("aten::prod")
def prod(g: Emitter, self: Value, dim: int | None = None, keepdim: bool = False, dtype: Any = None) -> Value:
    if g.output.dtype == BOOL:
        return _truth(g, self, dim, keepdim, "min_reduce", True)

    return _reduction(g, self, dim, keepdim, formulas.product_of)


def extreme(g: Emitter, self: Value, axes: list[int], operator: str) -> Value:
    """Write `max_reduce` or `min_reduce`, axes kept; booleans as integers or floats, which all versions can compare."""
    if not axes:
        return self
    x = as_numbers(g, self)
    result = g.call(operator, x, axes=axes)[0]
    if operator == "max_reduce" and least_of(x) is not None:
        return result
    return g.cast(_correct_extreme(g, x, result, axes, operator) if x.dtype.kind == "f" else result, self.dtype)


def _correct_extreme(g: Emitter, x: Value, result: Value, axes: list[int], operator: str) -> Value:
    """Correct an extreme: NaN if any element is NaN (kind 2), infinite if all elements are (kind 0)."""
    limits = np.finfo(x.dtype)
    usable = g.ge(x, float(limits.min)) if operator == "max_reduce" else g.le(x, float(limits.max))
    kinds = g.select(formulas.is_nan(g, x), 2.0, g.cast(usable, x.dtype))
    kind = g.max_reduce(kinds, axes=axes)
    number = g.select(g.eq(kind, 0.0), -math.inf if operator == "max_reduce" else math.inf, result)
    return g.select(g.eq(kind, 2.0), math.nan, number)


def has_extreme(g: Emitter, x: Value, extreme: Value) -> Value:
    """Return a mask of the elements that are the extreme; a NaN always is."""
    equal = g.eq(x, extreme)
    return g.or_(equal, formulas.is_nan(g, x)) if x.dtype.kind == "f" else equal


@op("aten::amax")
def amax(g: Emitter, self: Value, dim: Axes = (), keepdim: bool = False) -> Value:
    axes = axes_of(self, dim)
    return squeeze_unless(g, extreme(g, self, axes, "max_reduce"), axes, keepdim)


@op("aten::amin")
def amin(g: Emitter, self: Value, dim: Axes = (), keepdim: bool = False) -> Value:
    axes = axes_of(self, dim)
    return squeeze_unless(g, extreme(g, self, axes, "min_reduce"), axes, keepdim)


@op("aten::max")
def max_all(g: Emitter, self: Value) -> Value:
    return amax(g, self)


@op("aten::min")
def min_all(g: Emitter, self: Value) -> Value:
    return amin(g, self)


@op("aten::aminmax")
def aminmax(g: Emitter, self: Value, dim: int | None = None, keepdim: bool = False) -> tuple[Value, Value]:
    return amin(g, self, dim, keepdim), amax(g, self, dim, keepdim)


def arg_extreme(g: Emitter, self: Value, dim: int | None, keepdim: bool, operator: str) -> Value:
    """Return the first index of the extreme; without `dim`, in the flattened tensor."""
    x = as_numbers(g, self)
    if self.rank == 0:
        return g.cast(g.lt(x, x), INT64)
    if dim is None:
        flat = g.reshape_to(x, [product(x.shape)])
        return g.reshape_to(_first_index(g, flat, 0, operator), g.output.shape)
    axis = dim % x.rank
    return squeeze_unless(g, _first_index(g, x, axis, operator), [axis], keepdim)


def _first_index(g: Emitter, x: Value, axis: int, operator: str) -> Value:
    """Return the first index of the extreme; a NaN is the extreme, as in PyTorch."""
    index = g.call(operator, x, axes=[axis])[0]
    if x.dtype.kind != "f":
        return index
    holes = g.cast(formulas.is_nan(g, x), g.truth_dtype)
    return g.select(g.ne(g.max_reduce(holes, axes=[axis]), 0), g.argmax_reduce(holes, axes=[axis]), index)


@op("aten::argmax")
def argmax(g: Emitter, self: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return arg_extreme(g, self, dim, keepdim, "argmax_reduce")


@op("aten::argmin")
def argmin(g: Emitter, self: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return arg_extreme(g, self, dim, keepdim, "argmin_reduce")


@op("aten::max.dim")
def max_dim(g: Emitter, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """Return the greatest values, and the first index of each."""
    return amax(g, self, dim, keepdim), arg_extreme(g, self, dim, keepdim, "argmax_reduce")


@op("aten::min.dim")
def min_dim(g: Emitter, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    return amin(g, self, dim, keepdim), arg_extreme(g, self, dim, keepdim, "argmin_reduce")


def _truth(g: Emitter, self: Value, dim: Axes, keepdim: bool, operator: str, empty_is_all: bool) -> Value:
    axes = axes_of(self, dim, empty_is_all=empty_is_all)
    truth = g.cast(widen_float16(g, self), BOOL)
    return g.cast(squeeze_unless(g, extreme(g, truth, axes, operator), axes, keepdim), g.output.dtype)


@op("aten::any")
def any(g: Emitter, self: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    """Return whether any element is not zero."""
    return _truth(g, self, dim, keepdim, "max_reduce", True)


@op("aten::all")
def all(g: Emitter, self: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    """Return whether no element is zero."""
    return _truth(g, self, dim, keepdim, "min_reduce", True)


@op("aten::count_nonzero")
def count_nonzero(g: Emitter, self: Value, dim: Axes = None) -> Value:
    axes = axes_of(self, dim)
    ones = g.cast(g.cast(widen_float16(g, self), BOOL), INT64)
    return g.squeeze_axes(formulas.sum_of(g, ones, axes), axes)


def moments(
    g: Emitter, self: Value, dim: Axes, correction: float | None, keepdim: bool, unbiased: bool | None
) -> tuple[Value, Value]:
    """(variance, mean): the mean of squared distances from the mean, over count - correction."""
    axes = axes_of(self, dim)
    x = widen_float16(g, self)
    less = (1.0 if unbiased is None or unbiased else 0.0) if correction is None else float(correction)
    middle = mean_of(g, x, axes)
    distance = g.sub(x, middle)
    total = formulas.sum_of(g, g.mul(distance, distance), axes)
    divisor = count(g, x, axes, x.dtype, less)
    if isinstance(divisor, float) and divisor == 0:
        variance = g.div(total, g.constant(np.zeros((1,) * total.rank, x.dtype)))
    else:
        variance = g.div(total, divisor)
    return squeeze_unless(g, variance, axes, keepdim), squeeze_unless(g, middle, axes, keepdim)


@op("aten::var")
def var(g: Emitter, self: Value, dim: Axes = None, correction: float | None = None, keepdim: bool = False,
        unbiased: bool | None = None) -> Value:  # fmt: skip
    return g.cast(moments(g, self, dim, correction, keepdim, unbiased)[0], g.output.dtype)


@op("aten::std")
def std(g: Emitter, self: Value, dim: Axes = None, correction: float | None = None, keepdim: bool = False,
        unbiased: bool | None = None) -> Value:  # fmt: skip
    return g.cast(g.sqrt(moments(g, self, dim, correction, keepdim, unbiased)[0]), g.output.dtype)


@op("aten::var_mean")
def var_mean(g: Emitter, self: Value, dim: Axes = None, correction: float | None = None, keepdim: bool = False,
             unbiased: bool | None = None) -> tuple[Value, Value]:  # fmt: skip
    variance, middle = moments(g, self, dim, correction, keepdim, unbiased)
    return g.cast(variance, g.output.dtype), g.cast(middle, g.output.dtype)


@op("aten::std_mean")
def std_mean(g: Emitter, self: Value, dim: Axes = None, correction: float | None = None, keepdim: bool = False,
             unbiased: bool | None = None) -> tuple[Value, Value]:  # fmt: skip
    variance, middle = moments(g, self, dim, correction, keepdim, unbiased)
    return g.cast(g.sqrt(variance), g.output.dtype), g.cast(middle, g.output.dtype)


def log_sum_exp(g: Emitter, x: Value, axes: list[int]) -> Value:
    """max + log(sum(exp(x - max))); where the maximum is infinite, it is the result."""
    top = formulas.reduce_max(g, x, axes)
    shift = g.select(g.lt(formulas.absolute(g, top), math.inf), top, 0.0)
    return g.add(g.log(formulas.sum_of(g, g.exp(g.sub(x, shift)), axes)), shift)


@op("aten::logsumexp", "aten::special_logsumexp")
def logsumexp(g: Emitter, self: Value, dim: Axes, keepdim: bool = False) -> Value:
    return _reduction(g, self, dim, keepdim, log_sum_exp)


def norm_of(g: Emitter, x: Value, axes: list[int], ord: float) -> Value:
    """(sum |x|^ord)^(1/ord), with the limits at 0 and infinity."""
    size = formulas.absolute(g, x)
    if not axes:
        return g.cast(g.ne(x, 0.0), x.dtype) if ord == 0 else size
    if math.isinf(ord):
        return extreme(g, size, axes, "max_reduce" if ord > 0 else "min_reduce")
    if ord == 0:
        return g.sum_reduce(g.cast(g.ne(x, 0.0), x.dtype), axes=axes)
    if ord == 1:
        return g.sum_reduce(size, axes=axes)
    if ord == 2:
        return g.sqrt(g.sum_reduce(g.mul(x, x), axes=axes))
    return g.pow(g.sum_reduce(g.pow(size, float(ord)), axes=axes), 1.0 / ord)


@op("aten::linalg_vector_norm")
def linalg_vector_norm(
    g: Emitter, self: Value, ord: float = 2, dim: Axes = None, keepdim: bool = False, dtype: Any = None
) -> Value:
    return _reduction(g, self, dim, keepdim, lambda g, x, axes: norm_of(g, x, axes, float(ord)))


@op("aten::norm")
def norm(
    g: Emitter, self: Value, p: float | None = 2, dim: Axes = None, keepdim: bool = False, dtype: Any = None
) -> Value:
    order = 2.0 if p is None else float(p)
    return _reduction(g, self, dim, keepdim, lambda g, x, axes: norm_of(g, x, axes, order))


@op("aten::dist")
def dist(g: Emitter, self: Value, other: Value, p: float = 2) -> Value:
    """Return the norm of the difference."""
    difference = g.sub(wide_input(g, self), wide_input(g, other))
    return _reduction(g, difference, None, False, lambda g, x, axes: norm_of(g, x, axes, float(p)))


def _register_prims(key: str, formula: Callable[[Emitter, Value, list[int]], Value]) -> None:
    @op(key)
    def rule(g: Emitter, inp: Value, dims: Axes = None, output_dtype: Any = None) -> Value:
        axes = axes_of(inp, dims, empty_is_all=False)
        return g.cast(g.squeeze_axes(formula(g, inp, axes), axes), g.output.dtype)


_register_prims("prims::amax", lambda g, x, axes: extreme(g, x, axes, "max_reduce"))
_register_prims("prims::amin", lambda g, x, axes: extreme(g, x, axes, "min_reduce"))
_register_prims("prims::sum", lambda g, x, axes: formulas.sum_of(g, g.cast(x, wide_dtype(g.output.dtype)), axes))
_register_prims(
    "prims::prod",
    lambda g, x, axes: formulas.product_of(g, g.cast(x, wide_dtype(g.output.dtype)), axes),
)


@op("prims::var")
def prims_var(
    g: Emitter, inp: Value, dims: Axes = None, correction: float | None = 1, output_dtype: Any = None
) -> Value:
    return var(g, inp, dims, correction)
