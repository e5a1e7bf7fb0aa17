"""Cases of the standard's reductions, normalisations and products of matrices."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from t2n_core.dialect.arrays import Array
from t2n_core.dialect.cases.case import Case
from t2n_core.dialect.cases.draw import Draw, floating
from t2n_core.dialect.cases.recipes import recipe

_NUMBERS: Final = ("f32", "i64", "f32", "f16", "i32", "f32", "u8")
_FACTORS: Final = (
    *("f32", "f32", "i8", "f32", "f64", "i32", "f32", "u8", "f16", "f32"),
    *("i64", "f32", "i16", "f32", "u16", "f32", "u32", "u64"),
)


def _axes(draw: Draw, rank: int) -> list[int]:
    return sorted(draw.permutation(rank)[: draw.turn([1, 1, min(2, rank), rank])])


@recipe("sum_reduce", "mean_reduce", dynamic="any")
def _sum(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 4)), draw.turn(_NUMBERS if draw.op == "sum_reduce" else ["f32", "f16"])
    axes = _axes(draw, len(shape))
    if draw.number % 5 == 4:
        shape[axes[0]] = 0
    values = draw.floats(shape, kind) if kind.startswith("f") else draw.integers(shape, kind, 0, 9)
    if draw.number % 7 == 0 and kind == "f32":
        values = draw.with_special(shape, kind, (math.inf, -math.inf, math.nan, 0.0))
    arguments: dict[str, Any] = {"input": values, "axes": axes}
    return arguments | {"normalize": draw.flag() and kind.startswith("f")} if draw.op == "sum_reduce" else arguments


@recipe("max_reduce", "min_reduce", "argmax_reduce", "argmin_reduce", dynamic="any")
def _extreme(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 4)), draw.turn(_NUMBERS)
    values = draw.ties(shape, kind if kind != "u8" else "i8") if draw.number % 3 else draw.floats(shape)
    if draw.number % 6 == 3:
        values = draw.with_special(shape, "f32", (math.inf, -math.inf, 0.0, -0.0))
    axes = [draw.integer(0, len(shape) - 1)] if draw.op.startswith("arg") else _axes(draw, len(shape))
    return {"input": values, "axes": axes}


@recipe("any_reduce", "all_reduce", dynamic="any")
def _logical(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 4))
    return {"input": draw.flags(shape), "axes": _axes(draw, len(shape))}


@recipe("moments", dynamic="first")
def _moments(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 4))
    return {"input": draw.floats(shape, draw.turn(["f32", "f32", "f32", "f16"])), "axes": _axes(draw, len(shape))}


@recipe("softmax", dynamic="any")
def _softmax(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(2, 4), 2, 7)
    special = (-math.inf, 0.0, 50.0, -50.0)
    values = draw.with_special(shape, floating(draw), special) if draw.number % 2 else draw.floats(shape, "f32", 3.0)
    return {"x": values, "axes": draw.turn([[1], [len(shape) - 1], [0, 1]])}


@recipe("l1_normalization", "l2_normalization", dynamic="first")
def _normalization(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(2, 4))
    return {
        "input": draw.floats(shape, draw.turn(["f32", "f32", "f32", "f16"])),
        "axes": _axes(draw, len(shape)),
        "bias": draw.number_of(0.0, 0.5),
        "epsilon": draw.number_of(0.01, 2.0),
    }


@recipe("batch_normalization", dynamic="first", constant=("mean", "variance", "offset", "scale"))
def _batch_normalization(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(2, 4), 2, 6), draw.turn(["f32", "f32", "f32", "f16"])
    of_channels = [1, shape[1]]
    return {
        "input": draw.floats(shape, kind),
        "mean": draw.floats(of_channels, kind),
        "variance": np.abs(draw.floats(of_channels, kind)),
        "offset": draw.floats(of_channels, kind),
        "scale": draw.floats(of_channels, kind),
        "epsilon": draw.number_of(0.01, 0.5),
    }


def _factor(draw: Draw, shape: list[int], kind: str) -> Array:
    if kind.startswith("f"):
        return draw.floats(shape, kind)
    return draw.integers(shape, kind, 0 if kind.startswith("u") else -9, 9 if kind[1:] != "8" else 3)


@recipe("matmul")
def _matmul(draw: Draw) -> Case:
    rank, kind = draw.integer(2, 4), draw.turn(_FACTORS)
    batch, (m, k, n) = draw.shape(rank - 2, 1, 4), draw.shape(3, 1, 7)
    transposes = {"transposeA": draw.flag(), "transposeB": draw.flag()}
    of_a = [k, m] if transposes["transposeA"] else [m, k]
    of_b = [n, k] if transposes["transposeB"] else [k, n]
    repeated = [1] * (rank - 2)
    a, b = _factor(draw, [*batch, *of_a], kind), _factor(draw, [*batch, *of_b], kind)
    stored: frozenset[str] = frozenset({"B"}) if draw.flag() else frozenset()
    dynamic: dict[str, int] = {}
    match draw.number % 9:
        case 0:
            a = _factor(draw, [*repeated, *of_a], kind)
        case 3:
            b = _factor(draw, [*repeated, *of_b], kind)
        case 6 if rank > 2:
            a, stored = _factor(draw, [*[1] * (rank - 2), *of_a], kind), frozenset({"B"})
        case 1:
            dynamic, stored = {"A": rank - 2 if transposes["transposeA"] else rank - 1}, frozenset({"B"})
        case 4:
            dynamic, stored = {"A": rank - 1 if transposes["transposeA"] else rank - 2}, frozenset({"B"})
    return Case(draw.op, {"A": a, "B": b, **transposes}, stored, dynamic)


@recipe("linear", constant=("filter",), dynamic="first")
def _linear(draw: Draw) -> dict[str, Any]:
    rows, inputs, outputs = draw.shape(3, 1, 7)
    kind = draw.turn(["f32", "f32", "f32", "f16"])
    bias = draw.turn([None, draw.number_of(-1.0, 1.0), draw.floats([1, outputs], kind)])
    arguments = {"input": draw.floats([rows, inputs], kind), "filter": draw.floats([outputs, inputs], kind)}
    return arguments if bias is None else arguments | {"bias": bias}
