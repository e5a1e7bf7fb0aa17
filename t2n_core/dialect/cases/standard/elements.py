"""Cases of the standard's operators that work element by element."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from t2n_core.dialect.arrays import Array
from t2n_core.dialect.cases.case import Case
from t2n_core.dialect.cases.draw import Draw, floating
from t2n_core.dialect.cases.recipes import recipe

_NEAR_ONE: Final = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, math.inf, -math.inf, math.nan)
_KINDS: Final = ("f32", "i64", "f32", "i32", "f16", "f32", "u8", "f32", "i8", "f32")


@recipe("abs", "neg", "sign", "sqr", "square", "copy", dynamic="any")
def _signed(draw: Draw) -> dict[str, Any]:
    kind = draw.turn(["f32", "i64", "f32", "f16", "i32", "f32"])
    shape = draw.shape(draw.integer(1, 4))
    return {"x": draw.integers(shape, kind, -999, 999) if kind.startswith("i") else draw.with_special(shape, kind)}


@recipe("exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh", "atan", "sigmoid", "relu", dynamic="any")
@recipe("floor", "ceil", "round", "softplus", "elu", "selu", "gelu", "silu", "rcp", "recip", dynamic="any")
def _any_float(draw: Draw) -> dict[str, Any]:
    return {"x": draw.with_special(draw.shape(draw.integer(1, 4)), floating(draw))}


@recipe("asin", "acos", "atanh", "acosh", "log", "log2", "sqrt", "rsqrt", "rsqr", dynamic="any")
def _of_a_domain(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 4)), floating(draw)
    if draw.number % 3 == 2:
        return {"x": draw.with_special(shape, kind, _NEAR_ONE)}
    values = np.abs(draw.floats(shape, kind)) + np.asarray(1e-3, draw.floats([1], kind).dtype)
    if draw.op in ("asin", "acos", "atanh"):
        values = np.sin(values)
    return {"x": values + 1 if draw.op == "acosh" else values}


@recipe("softabs", dynamic="any")
def _softabs(draw: Draw) -> dict[str, Any]:
    return {"x": draw.with_special(draw.shape(draw.integer(1, 3)), floating(draw)), "epsilon": draw.number_of(0.1, 2)}


@recipe("leaky_relu", dynamic="any")
def _leaky_relu(draw: Draw) -> dict[str, Any]:
    return {"x": draw.with_special(draw.shape(draw.integer(1, 4)), floating(draw)), "alpha": draw.number_of(-0.5, 1.5)}


@recipe("prelu", dynamic="first")
def _prelu(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(2, 4)), floating(draw)
    alpha = draw.turn([draw.number_of(-0.5, 1.5), draw.floats([1, shape[1]], kind), draw.floats(shape, kind)])
    return {"x": draw.with_special(shape, kind), "alpha": alpha}


def _operand(draw: Draw, shape: list[int], kind: str) -> Array:
    if kind.startswith("f"):
        return draw.with_special(shape, kind) if draw.number % 3 else draw.floats(shape, kind)
    least = 0 if kind.startswith("u") else -9
    return draw.integers(shape, kind, 1 if draw.op == "div" else least, 9)


def _varied(draw: Draw, kind: str, x: Array, y: Array) -> Case:
    """Return a case of two operands, of which one is a literal, a stored tensor or broadcast in some cases."""
    rank, last, is_float = x.ndim, x.shape[-1], kind.startswith("f")
    stored = frozenset({"y"})
    match draw.number % 10:
        case 1 if is_float:
            return Case(draw.op, {"x": draw.number_of(-3.0, 3.0), "y": y})
        case 2 if is_float:
            return Case(draw.op, {"x": x, "y": draw.number_of(-3.0, 3.0)})
        case 3:
            return Case(draw.op, {"x": x, "y": draw.integer(1, 3)})
        case 4:
            return Case(draw.op, {"x": x[..., :1], "y": y})
        case 5:
            return Case(draw.op, {"x": x, "y": y.reshape(-1)[:1].reshape([1] * rank)})
        case 6:
            row = x.reshape(-1)[:last].reshape(*[1] * (rank - 1), last)
            return Case(draw.op, {"x": row, "y": np.full(x.shape, np.asarray(2, x.dtype))}, stored)
        case 7:
            return Case(draw.op, {"x": x, "y": y}, stored)
        case 8:
            wide = _operand(draw, [3, 4, 35], kind)
            return Case(draw.op, {"x": wide, "y": wide[:, :1, :] if draw.flag() else wide[:1, :, :1]})
    return Case(draw.op, {"x": x, "y": y})


@recipe("add", "sub", "mul", "div", "min", "max", dynamic="any")
@recipe("lt", "gt", "le", "ge", "eq", "ne", dynamic="any")
def _pair(draw: Draw) -> Case:
    shape, kind = draw.shape(draw.integer(1, 4)), draw.pick(_KINDS)
    return _varied(draw, kind, _operand(draw, shape, kind), _operand(draw, shape, kind))


@recipe("pow", dynamic="any")
def _pow(draw: Draw) -> Case:
    shape, kind = draw.shape(draw.integer(1, 4)), floating(draw)
    x = np.abs(draw.floats(shape, kind)) if draw.number % 3 else draw.with_special(shape, kind, _NEAR_ONE)
    y = draw.floats(shape, kind) if draw.number % 4 else draw.with_special(shape, kind, (0.0, 1.0, 2.0, -1.0, 0.5))
    return _varied(draw, kind, x, y)


@recipe("and", "or", dynamic="any")
def _logical(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 4))
    y = draw.turn([draw.flags(shape), draw.flags(draw.broadcastable(shape)), draw.flag(), draw.flags(shape)])
    return {"x": draw.flags(shape), "y": y}


@recipe("not", dynamic="any")
def _not(draw: Draw) -> dict[str, Any]:
    return {"x": draw.turn([draw.flags(draw.shape(draw.integer(1, 4)))] * 9 + [draw.flag()])}


@recipe("select", dynamic="any")
def _select(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 4)), draw.turn(["f32", "i64", "f32", "bool", "f16", "i32"])
    if kind == "bool":
        first, second = draw.flags(shape), draw.turn([draw.flags(shape), draw.flag()])
    elif kind.startswith("f"):
        second = draw.turn([draw.with_special(shape, kind), draw.number_of(-2.0, 2.0), draw.floats(shape, kind)])
        first = draw.with_special(draw.broadcastable(shape) if isinstance(second, np.ndarray) else shape, kind)
    else:
        first, second = draw.integers(shape, kind), draw.turn([draw.integers(shape, kind), draw.integer(-9, 9)])
    return {"condition": draw.flags(draw.broadcastable(shape)), "true_value": first, "false_value": second}


@recipe("clamp", dynamic="any")
def _clamp(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 4)), floating(draw)
    low, high = sorted([draw.number_of(-2.0, 2.0), draw.number_of(-2.0, 2.0)])
    if draw.number % 5 == 4:
        low, high = high, low
    bounds: list[Any] = [low, high]
    if draw.number % 3 == 2:
        bounds = [draw.floats(draw.broadcastable(shape), kind), draw.floats(shape, kind)]
    return {"x": draw.with_special(shape, kind), "a": bounds[0], "b": bounds[1]}


@recipe("add_n", dynamic="any")
def _add_n(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 3)), floating(draw)
    return {"x": [draw.floats(shape, kind) for _ in range(draw.integer(1, 4))]}


@recipe("cast")
def _cast(draw: Draw) -> Case:
    shape, to = draw.shape(draw.integer(1, 3)), draw.turn(["scalar", "integer", "logical"])
    source = draw.pick(["f32", "i64", "bool"])
    values = draw.flags(shape) if source == "bool" else draw.floats(shape, "f32", 5.0)
    return Case("cast", {"input": draw.integers(shape, "i64", -9, 9) if source == "i64" else values}, dtype=to)


def _quantized(draw: Draw) -> dict[str, Any]:
    low = draw.number_of(-3.0, 0.0)
    return {"x": draw.floats(draw.shape(draw.integer(1, 3))), "min": low, "max": low + 4.0, "bits": draw.integer(1, 8)}


@recipe("linear_quantize")
def _linear_quantize(draw: Draw) -> dict[str, Any]:
    return _quantized(draw)


@recipe("min_max_linear_quantize")
def _min_max(draw: Draw) -> dict[str, Any]:
    return {**_quantized(draw), "signed": draw.flag(), "symmetric": draw.flag()}


@recipe("zero_point_linear_quantize")
def _zero_point(draw: Draw) -> dict[str, Any]:
    return {
        "x": draw.floats(draw.shape(draw.integer(1, 3))),
        "zero_point": draw.integer(-3, 3),
        "scale": draw.number_of(0.02, 0.5),
        "bits": draw.integer(2, 8),
        "signed": draw.flag(),
        "symmetric": draw.flag(),
    }


@recipe("logarithmic_quantize")
def _logarithmic(draw: Draw) -> dict[str, Any]:
    special = (0.0, 1.0, -1.0, 2.0, 0.25)
    x = draw.with_special(draw.shape(draw.integer(1, 3)), "f32", special)
    return {"x": x, "max": draw.number_of(0.5, 9.0), "bits": draw.integer(1, 4)}
