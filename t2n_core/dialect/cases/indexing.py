"""Cases of operators that move elements, or find them."""

from __future__ import annotations

from typing import Any

import numpy as np

from t2n_core.dialect.cases.draw import Draw, arguments, floating
from t2n_core.dialect.cases.recipes import recipe

_REDUCTIONS = ("none", "add", "mul", "min", "max")


@recipe("tract_core_shape_of")
def _shape_of(draw: Draw) -> dict[str, Any]:
    return {"input": draw.floats(draw.shape(draw.integer(1, 5)))}


@recipe("tract_core_broadcast")
def _broadcast(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 4))
    return {"input": draw.floats(draw.broadcastable(shape), floating(draw)), "shape": shape}


@recipe("tract_core_range", constant=("start", "end", "step"))
def _range(draw: Draw) -> dict[str, Any]:
    step = draw.turn([1, 2, 3, -1, -2])
    start = draw.integer(-9, 9)
    end = start + (1 if step > 0 else -1) * draw.integer(0, 11)
    if draw.number % 3 == 0:
        kind = draw.turn(["f32", "i64", "i32"])
        kinds = {"f32": np.float32, "i64": np.int64, "i32": np.int32}
        return {name: np.array(at, kinds[kind]) for name, at in (("start", start), ("end", end), ("step", step))}
    return {"start": start, "end": end, "step": step}


@recipe("tract_core_one_hot")
def _one_hot(draw: Draw) -> dict[str, Any]:
    rank, dim = draw.integer(1, 3), draw.integer(1, 6)
    values = draw.turn([(None, None), (0.25, -3.0), (-1.0, 1.0)])
    return arguments(
        input=draw.indices(draw.shape(rank), dim, draw.turn(["i64", "i32"])),
        axis=draw.integer(0, rank),
        dim=dim,
        value_off=values[0],
        value_on=values[1],
    )


@recipe("tract_core_trilu", constant=("k",))
def _trilu(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(2, 4))
    return {"input": draw.floats(shape, floating(draw)), "k": np.array(draw.integer(-4, 4)), "upper": draw.flag()}


@recipe("tract_core_downsample")
def _downsample(draw: Draw) -> dict[str, Any]:
    rank = draw.integer(1, 4)
    stride = draw.turn([2, 1, 3, -1, 4, -2])
    return arguments(
        input=draw.floats(draw.shape(rank, 1, 9), floating(draw)),
        axis=draw.integer(0, rank - 1),
        stride=stride,
        modulo=draw.turn([None, 0, 1, 2]) if stride > 0 else None,
    )


@recipe("tract_core_dyn_slice", constant=("start", "end"))
def _dyn_slice(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 3), 2, 8)
    axis = draw.integer(0, len(shape) - 1)
    start = draw.integer(0, shape[axis] - 1)
    end = draw.integer(start + 1, shape[axis])
    return {
        "input": draw.floats(shape),
        "start": np.array(start),
        "end": np.array(end),
        "len": end - start,
        "axis": axis,
    }


@recipe("tract_core_force_eval")
def _force_eval(draw: Draw) -> dict[str, Any]:
    inputs = [draw.floats(draw.shape(draw.integer(1, 3))) for _ in range(draw.integer(2, 3))]
    output_index = draw.integer(0, len(inputs) - 1)
    return {"inputs": inputs, "slots": [at for at in range(len(inputs)) if at != output_index]}


def _data(draw: Draw, shape: list[int]) -> Any:
    kind = draw.turn(["f32", "f32", "i64", "f16", "i32", "bool"])
    if kind == "bool":
        return draw.flags(shape)
    return draw.floats(shape, kind) if kind.startswith("f") else draw.integers(shape, kind, -99, 99)


@recipe("tract_core_gather")
def _gather(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 4))
    axis = draw.integer(0, len(shape) - 1)
    indices = draw.indices(draw.shape(draw.integer(0, 3)), shape[axis], draw.turn(["i64", "i32"]))
    return {"input": _data(draw, shape), "indices": indices, "axis": axis}


@recipe("tract_core_gather_elements")
def _gather_elements(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 4))
    axis = draw.integer(0, len(shape) - 1)
    index_shape = [draw.integer(1, 6) if at == axis else draw.integer(1, extent) for at, extent in enumerate(shape)]
    return {"input": _data(draw, shape), "indices": draw.indices(index_shape, shape[axis]), "axis": axis}


@recipe("tract_core_gather_nd")
def _gather_nd(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(2, 4))
    batch = draw.turn([0, 1, 0]) if len(shape) > 2 else 0
    depth = draw.integer(1, len(shape) - batch)
    outer = [*shape[:batch], *draw.shape(draw.integer(1, 2))]
    columns = [draw.indices(outer, shape[batch + at], "i64", negative=False) for at in range(depth)]
    return {"input": _data(draw, shape), "indices": np.stack(columns, axis=-1), "batch_dims": batch}


def _reduction(draw: Draw) -> str | None:
    return None if draw.number % 3 == 0 else draw.turn(_REDUCTIONS)


@recipe("tract_core_scatter_elements")
def _scatter_elements(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 3)), draw.turn(["f32", "i64", "f32", "f16", "i32"])
    axis = draw.integer(0, len(shape) - 1)
    index_shape = [draw.integer(1, extent) for extent in shape]

    def values(extents: list[int]) -> Any:
        return draw.floats(extents, kind) if kind.startswith("f") else draw.integers(extents, kind, -9, 9)

    return arguments(
        input=values(shape),
        indices=draw.indices(index_shape, shape[axis]),
        updates=values(index_shape),
        axis=axis,
        reduction=_reduction(draw),
    )


@recipe("tract_core_scatter_nd")
def _scatter_nd(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 3)), draw.turn(["f32", "i64", "f32", "f16", "i32"])
    depth = draw.integer(1, len(shape))
    outer = draw.shape(draw.integer(1, 2), 1, 4)
    columns = [draw.indices(outer, shape[at], "i64", negative=False) for at in range(depth)]

    def values(extents: list[int]) -> Any:
        return draw.floats(extents, kind) if kind.startswith("f") else draw.integers(extents, kind, -9, 9)

    return arguments(
        input=values(shape),
        indices=np.stack(columns, axis=-1),
        updates=values([*outer, *shape[depth:]]),
        reduction=_reduction(draw),
    )
