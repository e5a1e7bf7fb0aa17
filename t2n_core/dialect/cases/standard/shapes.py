"""Cases of the standard's operators on shapes and on the choice of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from t2n_core.dialect.arrays import Array
from t2n_core.dialect.cases.case import Case
from t2n_core.dialect.cases.draw import Draw
from t2n_core.dialect.cases.recipes import recipe

_KINDS: Final = ("f32", "i64", "f32", "bool", "f16", "i32", "u8")


def _values(draw: Draw, shape: Sequence[int], kind: str) -> Array:
    if kind == "bool":
        return draw.flags(shape)
    return draw.floats(shape, kind) if kind.startswith("f") else draw.integers(shape, kind)


@recipe("reshape")
def _reshape(draw: Draw) -> Case:
    shape = draw.shape(draw.integer(1, 4), 1, 6)
    values = _values(draw, shape, draw.turn(_KINDS))
    total = math.prod(shape)
    arguments: dict[str, Any] = {"input": values}
    dynamic: dict[str, int] = {}
    match draw.number % 8:
        case 0:
            arguments["shape"] = [total]
        case 1:
            arguments["shape"] = [-1, shape[-1]]
        case 2:
            arguments["shape"] = [0, -1]
        case 3:
            arguments |= {"shape": [1, *shape[1:], 1], "axis_start": 1, "axis_count": len(shape) - 1}
        case 4:
            factor = next(divisor for divisor in (4, 3, 2, 5, 1) if total % divisor == 0)
            arguments["shape"] = [factor, total // factor]
        case 5:
            arguments = {"input": values.reshape(-1)[:1].reshape([1] * len(shape)), "shape": []}
        case 6:
            arguments |= {"shape": [shape[0], 1], "axis_start": 0, "axis_count": 1}
        case _:
            arguments["shape"] = [-1, *shape[1:], 1]
            dynamic = {"input": 0}
    return Case(draw.op, arguments, dynamic=dynamic)


@recipe("transpose", dynamic="any")
def _transpose(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 5), 1, 6)
    axes = draw.permutation(len(shape))
    if draw.number % 5 == 4:
        axes = draw.permutation(max(len(shape) - 1, 1))
    return {"input": _values(draw, shape, draw.turn(_KINDS)), "axes": axes}


@recipe("squeeze", dynamic="first")
def _squeeze(draw: Draw) -> dict[str, Any]:
    shape = [draw.integer(2, 6), *draw.shape(draw.integer(1, 3), 2, 6)]
    axes = sorted(draw.permutation(len(shape))[: draw.integer(1, 2)])
    axes = [axis for axis in axes if axis] or [1]
    for axis in axes:
        shape[axis] = 1
    return {"input": _values(draw, shape, draw.turn(_KINDS)), "axes": axes}


@recipe("unsqueeze", dynamic="any")
def _unsqueeze(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 3))
    added = draw.integer(1, 2)
    axes = sorted(draw.permutation(len(shape) + added)[:added])
    return {"input": _values(draw, shape, draw.turn(_KINDS)), "axes": axes}


@recipe("tile", dynamic="any")
def _tile(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 4), 1, 5)
    return {"input": _values(draw, shape, draw.turn(_KINDS)), "repeats": [draw.integer(1, 3) for _ in shape]}


def _alike(draw: Draw, axis: int, shape: list[int]) -> list[Array]:
    """Return tensors whose shapes differ along one axis only."""
    kind = draw.turn(_KINDS)
    extents = draw.shape(draw.integer(1, 3), 1, 6)
    return [_values(draw, [*shape[:axis], extent, *shape[axis + 1 :]], kind) for extent in extents]


@recipe("concat")
def _concat(draw: Draw) -> Case:
    shape = draw.shape(draw.integer(1, 4), 1, 6)
    axis = draw.integer(0, len(shape) - 1)
    dynamic = {"values": 0} if draw.number % 4 == 3 and axis else {}
    return Case(draw.op, {"values": _alike(draw, axis, shape), "axis": axis}, dynamic=dynamic)


@recipe("stack", dynamic="any")
def _stack(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 3)), draw.turn(_KINDS)
    values = [_values(draw, shape, kind) for _ in range(draw.integer(1, 3))]
    return {"values": values, "axis": draw.integer(0, len(shape))}


@recipe("split")
def _split(draw: Draw) -> dict[str, Any]:
    ratios = draw.shape(draw.integer(1, 3), 1, 3)
    shape = draw.shape(draw.integer(1, 3), 1, 5)
    axis = draw.integer(0, len(shape) - 1)
    shape[axis] = sum(ratios) * draw.integer(1, 2)
    return {"value": _values(draw, shape, draw.turn(_KINDS)), "axis": axis, "ratios": ratios}


@recipe("unstack")
def _unstack(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(2, 4), 1, 4)
    return {"value": _values(draw, shape, draw.turn(_KINDS)), "axis": draw.integer(0, len(shape) - 1)}


@recipe("copy_n", dynamic="any")
def _copy_n(draw: Draw) -> dict[str, Any]:
    return {"x": _values(draw, draw.shape(draw.integer(1, 3)), draw.turn(_KINDS)), "times": draw.integer(1, 3)}


@recipe("constant")
def _constant(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 3))
    count = 1 if draw.flag() else math.prod(shape)
    return {"shape": shape, "value": [draw.number_of(-3.0, 3.0) for _ in range(count)]}


@recipe("slice")
def _slice(draw: Draw) -> Case:
    shape = draw.shape(draw.integer(1, 4), 4, 9)
    axes = sorted(draw.permutation(len(shape))[: draw.integer(1, min(2, len(shape)))])
    begin = [draw.integer(0, 1) for _ in axes]
    end = [draw.integer(first + 1, shape[axis]) for first, axis in zip(begin, axes, strict=True)]
    arguments: dict[str, Any] = {"input": _values(draw, shape, draw.turn(_KINDS)), "axes": axes}
    stride: list[int] | None = None
    dynamic: dict[str, int] = {}
    match draw.number % 8:
        case 1:
            begin = [first - shape[axis] for first, axis in zip(begin, axes, strict=True)]
        case 2:
            end = [min(last - shape[axis], -1) for last, axis in zip(end, axes, strict=True)]
            begin = [0] * len(axes)
        case 3:
            end = [0] * len(axes)
        case 4:
            end = [shape[axis] + draw.integer(1, 3) for axis in axes]
        case 5:
            stride = [draw.integer(1, 3) for _ in axes]
        case 6:
            stride, end, begin = [-1] * len(axes), begin, [shape[axis] - 1 for axis in axes]
        case 7:
            end, dynamic = [0] * len(axes), {"input": axes[0]}
    arguments |= {"begin": begin, "end": end}
    return Case(draw.op, arguments if stride is None else arguments | {"stride": stride}, dynamic=dynamic)


@recipe("gather", dynamic="any")
def _gather(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 3))
    axis = draw.integer(0, len(shape) - 1)
    indices = draw.indices(draw.shape(draw.integer(1, 2)), shape[axis], negative=False)
    return {"input": _values(draw, shape, draw.turn(_KINDS)), "indices": indices, "axis": axis}


@recipe("pad", dynamic="first")
def _pad(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 4), 4, 8)
    border = draw.turn(["constant", "reflect", "constant", "replicate", "constant", "reflect-even", "constant"])
    padding = [(draw.integer(0, 2), draw.integer(0, 3)) for _ in shape]
    if draw.number % 7 == 6:
        padding[-1] = (-1, draw.integer(0, 2))
    if draw.number % 4 == 3:
        padding[0] = (0, 0)
    values = draw.floats(shape, draw.turn(["f32", "f32", "f16"]))
    arguments = {"input": values, "padding": padding, "border": border}
    return arguments | {"value": draw.number_of(-2.0, 2.0)} if border == "constant" else arguments
