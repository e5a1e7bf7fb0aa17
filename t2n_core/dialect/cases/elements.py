"""Cases of operators that work element by element."""

from __future__ import annotations

from typing import Any

from t2n_core.dialect.arrays import DATA_TYPES
from t2n_core.dialect.cases.draw import Draw, arguments, floating
from t2n_core.dialect.cases.recipes import recipe

_INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


@recipe(
    "tract_core_silu",
    "tract_transformers_silu",
    "tract_core_erf",
    "tract_core_round_even",
    "tract_core_is_nan",
    dynamic="any",
)
@recipe("tract_onnx_is_nan", "tract_core_hard_swish", dynamic="any")
def _x(draw: Draw) -> dict[str, Any]:
    return {"x": draw.with_special(draw.shape(draw.integer(1, 4)), floating(draw))}


@recipe("tract_core_is_inf", "tract_onnx_isinf", dynamic="any")
def _is_inf(draw: Draw) -> dict[str, Any]:
    x = draw.with_special(draw.shape(draw.integer(1, 3)), floating(draw))
    return arguments(
        input=x,
        detect_positive=draw.turn([None, True, False, False, True]),
        detect_negative=draw.turn([None, True, False, True, False]),
    )


@recipe("tract_core_gelu_approx", "tract_transformers_gelu_approx", dynamic="any")
def _gelu(draw: Draw) -> dict[str, Any]:
    special = (0.0, -0.0, 1.0, -1.0, 5.0, -5.0, 60.0, -60.0)
    x = draw.with_special(draw.shape(draw.integer(1, 3)), floating(draw), special)
    return {"input": x, "fast_impl": draw.turn([False, True, False])}


@recipe("tract_core_pow_const", dynamic="any")
def _pow_const(draw: Draw) -> dict[str, Any]:
    exponent = draw.turn([2.0, 0.5, -1.0, 3.0, 0.0, -0.5, 1.0, 2.5, -2.0, 1 / 3])
    return {"input": draw.with_special(draw.shape(draw.integer(1, 3)), floating(draw)), "exponent": exponent}


@recipe("tract_core_clamped_swiglu", dynamic="any")
def _clamped_swiglu(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 3)), floating(draw)
    return {
        "gate": draw.floats(shape, kind, 4.0),
        "up": draw.floats(shape, kind, 4.0),
        "alpha": draw.number_of(0.5, 2.0),
        "limit": draw.number_of(0.5, 7.0),
    }


@recipe("tract_core_bitand", "tract_core_bitor", "tract_core_bitxor", dynamic="any")
def _bits(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 3)), draw.turn([*_INTEGERS, "bool"])
    if kind == "bool":
        return {"x": draw.flags(shape), "y": draw.flags(shape)}
    return {"x": draw.integers(shape, kind), "y": draw.integers(draw.broadcastable(shape), kind)}


@recipe("tract_core_bitnot", dynamic="any")
def _bitnot(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 3)), draw.turn([*_INTEGERS, "bool"])
    return {"x": draw.flags(shape) if kind == "bool" else draw.integers(shape, kind)}


@recipe("tract_core_xor", dynamic="any")
def _xor(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 3))
    return {"x": draw.flags(shape), "y": draw.flags(draw.broadcastable(shape))}


@recipe("tract_shl", "tract_shr", dynamic="any")
def _shift(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 3)), draw.turn(_INTEGERS)
    width = DATA_TYPES[kind].itemsize * 8
    return {"x": draw.integers(shape, kind), "y": draw.integers(draw.broadcastable(shape), kind, 0, width - 1)}


@recipe("tract_core_cast", dynamic="any")
def _cast(draw: Draw) -> dict[str, Any]:
    source = draw.turn(["f32", "i64", "f16", "i32", "u8", "bool", "i8", "f32", "f64"])
    to = draw.pick(["f32", "f16", "i64", "i32", "i8", "u8", "bool", "u16", "i16", "f64", "u32", "u64"])
    shape = draw.shape(draw.integer(1, 3))
    if source == "bool":
        values = draw.flags(shape)
    elif source.startswith("f"):
        values = draw.with_special(shape, source, (0.0, -0.0, 0.5, -0.5, 2.5, -2.5, 127.6, 300.0, -300.0, 7e4))
    else:
        values = draw.integers(shape, source)
    return {"input": values, "to": to}
