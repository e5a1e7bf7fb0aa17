"""Activations.

`relu`, `sigmoid`, `tanh`, `gelu`, `relu6`, `hardtanh` and `hardsigmoid` are the engine's own kernels, fast and fused;
their result for a NaN is the engine's, unless the option `keep_nan` is on. All other rules keep a NaN as PyTorch does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.nnef.sizes.dims import Dim
from t2n_core.op import formulas, saturation
from t2n_core.op.promote import Tensorlike, operand, wide_input
from t2n_core.op.registry import op


def _as_output(g: Emitter, value: Value) -> Value:
    return g.cast(value, g.output.dtype)


_NEVER_NEGATIVE = frozenset({"abs", "exp", "relu", "sigmoid", "sqr", "sqrt"})


@op("aten::relu")
def relu(g: Emitter, self: Value) -> Value:
    """max(x, 0). A value without negative elements is returned unchanged, with its NaN, for the `relu` in LPPool."""
    if self.producer is not None and self.producer.name in _NEVER_NEGATIVE:
        return self
    if self.dtype.kind != "f":
        return g.max(self, 0)
    return formulas.with_nan(g, g.relu(self), self)


@op("aten::relu6")
def relu6(g: Emitter, self: Value) -> Value:
    return hardtanh(g, self, 0.0, 6.0)


@op("aten::hardtanh")
def hardtanh(g: Emitter, self: Value, min_val: Tensorlike = -1.0, max_val: Tensorlike = 1.0) -> Value:
    """min(max(x, min_val), max_val)."""
    low, high = operand(g, min_val, self.dtype), operand(g, max_val, self.dtype)
    return formulas.minimum(g, formulas.maximum(g, self, low), high)


@op("aten::leaky_relu")
def leaky_relu(g: Emitter, self: Value, negative_slope: float = 0.01) -> Value:
    """Return x, below zero times the slope; the engines' operator, which keeps a NaN, is one pass."""
    x = wide_input(g, self)
    if x.dtype == FLOAT32 and math.isfinite(negative_slope):
        return _as_output(g, g.leaky_relu(x, alpha=negative_slope))
    return _as_output(g, g.select(g.lt(x, 0.0), g.mul(x, negative_slope), x))


@op("aten::rrelu")
def rrelu(g: Emitter, self: Value, lower: float = 0.125, upper: float = 1 / 3, training: bool = False) -> Value:
    """Return leaky_relu with the mean slope, which is what rrelu computes outside training."""
    if training:
        raise g.fail("rrelu is random in training mode", hint="call model.eval() before exporting")
    return leaky_relu(g, self, (lower + upper) / 2)


@op("aten::prelu", "aten::_prelu_kernel")
def prelu(g: Emitter, self: Value, weight: Value) -> Value:
    """Return x where it is positive, and x times a slope elsewhere: one slope, or one for each channel (axis 1)."""
    slope = weight
    if weight.rank == 1 and self.rank != 1:
        channels: list[Dim] = [1] * self.rank
        if channels:  # a scalar has no channel axis, and its weight is a single element too
            channels[1] = weight.shape[0]
        slope = g.reshape_to(weight, channels)
    x = wide_input(g, self)
    return _as_output(g, g.select(g.gt(x, 0.0), x, g.mul(x, wide_input(g, slope))))


def _exponential(keys: str, alpha: float, scale: float) -> None:
    @op(keys)
    def rule(g: Emitter, self: Value) -> Value:
        return _elu(g, self, alpha, scale, 1.0)


_SELU = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def _elu(g: Emitter, self: Value, alpha: float, scale: float, input_scale: float) -> Value:
    """scale * x above zero, otherwise scale * alpha * (exp(input_scale * x) - 1)."""
    x = wide_input(g, self)
    scaled = x if input_scale == 1 else g.mul(x, input_scale)
    below = g.mul(formulas.expm1(g, g.min(scaled, 0.0)), alpha * scale)
    return _as_output(g, g.select(g.le(x, 0.0), below, x if scale == 1 else g.mul(x, scale)))


_exponential("aten::selu", _SELU[1], _SELU[0])


@op("aten::elu")
def elu(g: Emitter, self: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    """Write the formula, because tract's own `elu` ignores alpha."""
    return _elu(g, self, float(alpha), float(scale), float(input_scale))


@op("aten::celu")
def celu(g: Emitter, self: Value, alpha: float = 1.0) -> Value:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    return _elu(g, self, float(alpha), 1.0, 1.0 / float(alpha))


@op("aten::gelu")
def gelu(g: Emitter, self: Value, approximate: str = "none") -> Value:
    """x / 2 * (1 + erf(x / sqrt(2))), or with tanh instead of erf."""
    x = wide_input(g, self)
    if approximate == "tanh":
        x = saturation.zero_below(g, x, x, saturation.GELU_CLOSES)
        cube = g.mul(g.mul(x, x), x)
        inner = g.mul(g.add(g.mul(cube, 0.044715), x), math.sqrt(2 / math.pi))
        gate = g.tanh(inner)
    else:
        gate = formulas.erf_kernel(g, g.mul(x, math.sqrt(0.5)))  # which the engine recognises as a gelu
    return _as_output(g, formulas.with_nan(g, g.mul(g.mul(x, 0.5), g.add(gate, 1.0)), x))


@op("aten::gelu", target="tract", since="0.23.2")
def gelu_of_the_engine(g: Emitter, self: Value, approximate: str = "none") -> Value:
    """Write the tanh variant with the engine's operator; the engine recognises the erf variant in its formula."""
    x = wide_input(g, self)
    if approximate != "tanh" or x.dtype != FLOAT32:
        return gelu(g, self, approximate)
    closed = saturation.zero_below(g, x, x, saturation.GELU_CLOSES)
    return _as_output(g, formulas.with_nan(g, g.tract_core_gelu_approx(closed, fast_impl=False), x))


@op("aten::silu")
def silu(g: Emitter, self: Value) -> Value:
    """x * sigmoid(x)."""
    x = wide_input(g, self)
    return _as_output(g, saturation.closing_sigmoid_product(g, x, x))


@op("aten::mish")
def mish(g: Emitter, self: Value) -> Value:
    """Return x * tanh(softplus(x)) as x * n / (n + 2) with n = exp(x) * (exp(x) + 2), which needs no other function.

    The quotient is 1 from 20 on in every dtype, and exp of more would overflow. A NaN is kept by the product.
    """
    x = wide_input(g, self)
    power = g.exp(g.min(x, 20.0))
    n = g.mul(power, g.add(power, 2.0))
    return _as_output(g, g.mul(x, g.div(n, g.add(n, 2.0))))


def _gate(g: Emitter, x: Value) -> Value:
    """min(max(x + 3, 0), 6) / 6."""
    return g.div(formulas.minimum(g, formulas.maximum(g, g.add(x, 3.0), 0.0), 6.0), 6.0)


@op("aten::hardsigmoid")
def hardsigmoid(g: Emitter, self: Value) -> Value:
    return _as_output(g, _gate(g, wide_input(g, self)))


@op("aten::hardswish")
def hardswish(g: Emitter, self: Value) -> Value:
    """Return x * hardsigmoid(x); tract's operator, which keeps a NaN, takes a twentieth of the time."""
    x = wide_input(g, self)
    if x.dtype == FLOAT32 and g.spec.has("tract_core_hard_swish"):
        return _as_output(g, g.tract_core_hard_swish(x))
    return _as_output(g, g.mul(x, _gate(g, x)))


@op("aten::softplus")
def softplus(g: Emitter, self: Value, beta: Tensorlike = 1, threshold: Tensorlike = 20) -> Value:
    """log(1 + exp(beta x)) / beta, x itself above the threshold; tract's own overflows at 88.

    From 20 on the logarithm of a float32 is x already.
    """
    x = wide_input(g, self)
    scaled = x if beta == 1 else g.mul(x, float(beta))  # type: ignore[arg-type]
    soft = formulas.softplus(g, scaled)
    if beta == 1 and x.dtype == FLOAT32 and not float(threshold) < 20:  # type: ignore[arg-type]
        return _as_output(g, soft)
    soft = soft if beta == 1 else g.div(soft, float(beta))  # type: ignore[arg-type]
    return _as_output(g, g.select(g.gt(scaled, float(threshold)), x, soft))  # type: ignore[arg-type]


@op("aten::log_sigmoid", "aten::log_sigmoid_forward")
def log_sigmoid(g: Emitter, self: Value) -> Any:
    """min(x, 0) - log(1 + exp(-|x|))."""
    x = wide_input(g, self)
    value = _as_output(g, g.neg(formulas.softplus(g, g.neg(x))))
    return value if len(g.node.outputs) == 1 else (value, None)


@op("aten::hardshrink")
def hardshrink(g: Emitter, self: Value, lambd: float = 0.5) -> Value:
    """Zero where |x| <= lambd."""
    x = wide_input(g, self)
    drop = g.and_(g.le(x, float(lambd)), g.ge(x, -float(lambd)))
    return _as_output(g, g.select(drop, 0.0, x))


@op("aten::softshrink")
def softshrink(g: Emitter, self: Value, lambd: float = 0.5) -> Value:
    """x moved towards zero by lambd."""
    x, width = wide_input(g, self), float(lambd)
    return _as_output(g, g.sub(x, g.min(g.max(x, -width), width)))


@op("aten::threshold")
def threshold(g: Emitter, self: Value, threshold: Tensorlike, value: Tensorlike) -> Value:
    """`value` where x <= threshold."""
    x = wide_input(g, self)
    return _as_output(g, g.select(g.le(x, operand(g, threshold, x.dtype)), operand(g, value, x.dtype), x))


@op("aten::glu")
def glu(g: Emitter, self: Value, dim: int = -1) -> Value:
    """Return the first half times the sigmoid of the second."""
    axis = dim % self.rank
    x, half = wide_input(g, self), g.output.shape[axis]
    first, second = g.take(x, axis, 0, half), g.take(x, axis, half, self.shape[axis])
    return _as_output(g, saturation.closing_sigmoid_product(g, first, second))


def _softmax(keys: tuple[str, ...], formula: Callable[[Emitter, Value, int], Value]) -> None:
    @op(*keys)
    def rule(g: Emitter, self: Value, dim: int, dtype: Any = None, half_to_float: bool = False) -> Value:
        x = wide_input(g, self)
        if x.rank == 0:
            return g.squeeze(formula(g, g.unsqueeze(x, axes=[0]), 0), axes=[0])
        return _as_output(g, formula(g, x, dim % x.rank))


def _log_softmax(g: Emitter, x: Value, axis: int) -> Value:
    """x - max - log(sum(exp(x - max)))."""
    shifted = g.sub(x, g.max_reduce(x, axes=[axis]))
    return g.sub(shifted, g.log(g.sum_reduce(g.exp(shifted), axes=[axis])))


_softmax(("aten::softmax.int", "aten::_softmax", "aten::special_softmax"), lambda g, x, axis: g.softmax(x, axes=[axis]))
_softmax(("aten::log_softmax.int", "aten::_log_softmax", "aten::special_log_softmax"), _log_softmax)
