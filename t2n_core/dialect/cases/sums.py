"""Cases of reductions, products of matrices, convolutions and transforms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from t2n_core.dialect.cases.draw import Draw, arguments, floating
from t2n_core.dialect.cases.recipes import recipe

_EXPRESSIONS = (
    "mk,kn->mn",
    "k,k->",
    "bmk,bkn->bmn",
    "mk,nk->mn",
    "ij->ji",
    "ij->i",
    "abc,cd->abd",
    "bhqd,bhkd->bhqk",
    "ij,jk,kl->il",
    "i,j->ij",
    "mk,k->m",
    "bij,bij->b",
)


@recipe("tract_core_argmax_reduce_last", "tract_core_argmin_reduce_last", dynamic="any")
def _argument(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 4))
    match draw.number % 4:
        case 0:
            values = draw.ties(shape, draw.turn(["f32", "i64", "f32", "i32"]))
        case 1:
            values = draw.with_special(shape, "f32", (math.inf, -math.inf, 0.0, 1.0))
        case 2:
            values = np.full(shape, draw.pick([math.inf, -math.inf, 0.0]), dtype=np.float32)
        case _:
            values = draw.floats(shape, floating(draw))
    return {"input": values, "axes": [draw.integer(0, len(shape) - 1)]}


@recipe("tract_core_product_reduce", dynamic="any")
def _product(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 4)), draw.turn(["f32", "i64", "f32", "f16", "i32"])
    values = draw.floats(shape, kind) if kind.startswith("f") else draw.integers(shape, kind, -9, 9)
    axes = sorted(draw.permutation(len(shape))[: draw.integer(1, len(shape))])
    return {"input": values, "axes": axes}


@recipe("tract_core_cumsum", dynamic="any")
def _cumsum(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 4)), draw.turn(["f32", "i64", "f32", "f16", "i32"])
    values = draw.floats(shape, kind) if kind.startswith("f") else draw.integers(shape, kind, -99, 99)
    return {"input": values, "axis": draw.integer(0, len(shape) - 1), "exclusive": draw.flag(), "reverse": draw.flag()}


@recipe("tract_core_softmax", "tract_core_log_softmax", dynamic="any")
def _softmax(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 4), 2, 7)
    axes = sorted(draw.permutation(len(shape))[: draw.turn([1, 1, 2])])
    special = (-math.inf, 0.0, 50.0, -50.0)
    values = draw.with_special(shape, floating(draw), special) if draw.number % 2 else draw.floats(shape, "f32", 3.0)
    return {"x": values, "axes": axes}


@recipe("tract_core_topk", constant=("k",))
def _topk(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 4))
    axis = draw.integer(0, len(shape) - 1)
    kind = draw.turn(["f32", "i64", "f32", "i32"])
    values = draw.ties(shape, kind) if draw.number % 2 or not kind.startswith("f") else draw.floats(shape, kind)
    return {"input": values, "k": np.array(draw.integer(1, shape[axis])), "axis": axis, "largest": draw.flag()}


@recipe("tract_core_einsum")
def _einsum(draw: Draw) -> dict[str, Any]:
    expr = draw.turn(_EXPRESSIONS)
    kind = draw.turn(["f32", "f32", "f16", "f32", "i32", "f32", "i64", "f32", "u8", "f16", "f32", "i16", "u32"])
    acc = "f32" if kind == "f16" and draw.flag() else kind
    return {"inputs": _operands(draw, expr, kind), "expr": expr, "acc": acc}


def _operands(draw: Draw, expr: str, kind: str) -> list[Any]:
    extents = {letter: draw.integer(1, 6) for letter in sorted(set(expr) - set(",->"))}
    shapes = [[extents[letter] for letter in letters] for letters in expr.partition("->")[0].split(",")]
    return [draw.floats(shape, kind) if kind.startswith("f") else draw.integers(shape, kind, 0, 9) for shape in shapes]


@recipe("tract_onnx_einsum")
def _onnx_einsum(draw: Draw) -> dict[str, Any]:
    expr = draw.turn(_EXPRESSIONS)
    return {"inputs": _operands(draw, expr, "f32"), "expr": expr}


def _matrices(draw: Draw) -> tuple[list[int], list[int], list[int]]:
    """Return the shapes of two operands of one rank, and the six axes."""
    rank = draw.integer(2, 4)
    axes = [*draw.permutation(rank)[:2], *draw.permutation(rank)[:2]]
    if draw.number % 3 == 0:
        axes = [rank - 2, rank - 1, rank - 2, rank - 1]
    a_m, a_k, b_k, b_n = axes
    result = [rank - 2, rank - 1]
    m, k, n = draw.shape(3, 1, 6)
    batch = draw.shape(rank, 1, 4)
    a = [m if at == a_m else k if at == a_k else batch[at] for at in range(rank)]
    b = [k if at == b_k else n if at == b_n else batch[at] for at in range(rank)]
    return a, b, [*axes, *result]


@recipe("tract_core_matmul")
def _matmul(draw: Draw) -> dict[str, Any]:
    a, b, axes = _matrices(draw)
    return {"A": draw.floats(a), "B": draw.floats(b), "axes": axes}


def _grids(draw: Draw) -> dict[str, Any]:
    return {
        "a0": draw.integer(-9, 9),
        "a_scale": draw.pick([0.5, 0.25, 0.02, 1.0]),
        "b0": draw.integer(-9, 9),
        "b_scale": draw.pick([0.5, 0.125, 0.03, 1.0]),
        "c0": draw.integer(-9, 9),
        "c_scale": draw.pick([1.0, 2.0, 0.07]),
    }


@recipe("tract_core_qmatmul", constant=("bias",))
def _qmatmul(draw: Draw) -> dict[str, Any]:
    a, b, axes = _matrices(draw)
    return {
        "A": draw.integers(a, "i8"),
        "B": draw.integers(b, "i8"),
        "bias": np.zeros([1] * len(a), dtype=np.int32),
        "axes": axes,
        **_grids(draw),
        "output_type": draw.turn(["i8", "i32"]),
    }


@recipe("tract_core_einsum_q", constant=("bias", "a0", "a_scale", "b0", "b_scale", "c0", "c_scale"))
def _einsum_q(draw: Draw) -> dict[str, Any]:
    m, k, n = draw.shape(3, 1, 6)
    grids = _grids(draw)
    rows = draw.number % 2 == 1
    scale = [0.5] * m if rows else 0.5
    return {
        "inputs": [draw.integers([m, k], "i8"), draw.integers([k, n], "i8")],
        "expr": f"mk,kn,,,{'m' if rows else ''},,,,->mn",
        "acc": "i32",
        "output": "i8",
        "bias": np.array(draw.integer(-99, 99), dtype=np.int32),
        **{name: np.asarray(grids[name], dtype=np.int32) for name in ("a0", "b0", "c0")},
        "a_scale": np.asarray(scale, dtype=np.float32),
        **{name: np.asarray(grids[name], dtype=np.float32) for name in ("b_scale", "c_scale")},
    }


@recipe("tract_core_qconv", constant=("filter", "bias"))
def _qconv(draw: Draw) -> dict[str, Any]:
    spatial = draw.turn([1, 2])
    channels, filters = draw.integer(1, 3), draw.integer(1, 4)
    window = draw.shape(spatial, 1, 3)
    kind = draw.turn(["i8", "u8"])
    return {
        "input": draw.integers([draw.integer(1, 2), channels, *draw.shape(spatial, 5, 8)], kind),
        "filter": draw.integers([filters, channels, *window], kind),
        "bias": draw.integers([filters], "i32", -500, 500),
        "group": 1,
        "dilation": [draw.integer(1, 2) for _ in range(spatial)],
        "stride": [draw.integer(1, 2) for _ in range(spatial)],
        "padding": [(draw.integer(0, 2), draw.integer(0, 2)) for _ in range(spatial)],
        "border": "constant",
        **{name: abs(at) if kind == "u8" and name in ("a0", "b0", "c0") else at for name, at in _grids(draw).items()},
    }


@recipe("tract_core_fft")
def _fft(draw: Draw) -> dict[str, Any]:
    shape = [*draw.shape(draw.integer(1, 3), 1, 9), 2]
    return {"input": draw.floats(shape), "axis": draw.integer(0, len(shape) - 2), "inverse": draw.flag()}


@recipe("tract_core_stft", constant=("window",))
def _stft(draw: Draw) -> dict[str, Any]:
    shape = [*draw.shape(draw.integer(1, 3), 1, 4), 2]
    axis = draw.integer(0, len(shape) - 2)
    frame = draw.integer(2, 6)
    shape[axis] = frame + draw.integer(0, 9)
    length = draw.turn([None, frame, max(frame - 1, 1), max(frame - 2, 1)])
    return arguments(
        input=draw.floats(shape),
        axis=axis,
        frame=frame,
        stride=draw.integer(1, 4),
        window=None if length is None else draw.floats([length]),
    )
