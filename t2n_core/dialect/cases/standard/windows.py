"""Cases of the standard's operators that slide a window over a tensor."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from t2n_core.dialect.cases.case import Case
from t2n_core.dialect.cases.draw import Draw
from t2n_core.dialect.cases.recipes import recipe

_BORDERS: Final = ("constant", "ignore", "constant", "ignore", "ignore", "replicate", "constant", "reflect", "ignore")


def _input(draw: Draw, spatial: int) -> list[int]:
    return [draw.integer(1, 2), draw.integer(1, 3), *draw.shape(spatial, 5, 9)]


def _window(draw: Draw, shape: list[int], border: str) -> dict[str, Any]:
    """Return size, padding, stride and dilation of windows over all axes."""
    spatial = len(shape) - 2
    size = [1, 1, *draw.shape(spatial, 1, 3)]
    dilation = [1, 1, *(draw.integer(1, 2) for _ in range(spatial))]
    padding = [(0, 0), (0, 0), *((draw.integer(0, 1), draw.integer(0, 1)) for _ in range(spatial))]
    match draw.number % 6:
        case 1:
            padding = [(0, 0)] * len(shape)
        case 2:
            padding = []
        case 4:
            dilation = [1] * len(shape)
            size[1] = shape[1]
            padding = [(0, 0)] * len(shape)
        case 5 if draw.number % 4 == 1:
            padding[-1], dilation = (-1, 0), [1] * len(shape)
    size = [
        max(extent, 2) if sum(amount) > 0 else extent
        for extent, amount in zip(size, padding or [(0, 0)] * 9, strict=False)
    ]
    return {
        "size": size,
        "border": border,
        "padding": padding,
        "stride": [1, 1, *(draw.integer(1, 3) for _ in range(spatial))],
        "dilation": dilation,
    }


@recipe("box", dynamic="first")
def _box(draw: Draw) -> dict[str, Any]:
    shape = _input(draw, draw.turn([1, 2, 2]))
    window = _window(draw, shape, draw.turn(_BORDERS))
    return {"input": draw.floats(shape, draw.turn(["f32", "f32", "f32", "f16"])), **window, "normalize": draw.flag()}


@recipe("avg_pool", "rms_pool", "max_pool", "argmax_pool", "max_pool_with_index", dynamic="first")
def _pool(draw: Draw) -> dict[str, Any]:
    shape = _input(draw, draw.turn([1, 2, 2]))
    values = draw.floats(shape, draw.turn(["f32", "f32", "f32", "f16"]))
    if draw.number % 3 == 0:
        values = -np.abs(values)
    return {"input": values, **_window(draw, shape, draw.turn(_BORDERS))}


@recipe("local_response_normalization", "local_mean_normalization", dynamic="first")
@recipe("local_variance_normalization", "local_contrast_normalization", dynamic="first")
def _around(draw: Draw) -> dict[str, Any]:
    shape = _input(draw, draw.turn([1, 2]))
    size = [1, draw.turn([1, shape[1], 1]), *draw.shape(len(shape) - 2, 1, 3)]
    if draw.number % 8 == 4:
        size = [1] * len(shape)
    arguments: dict[str, Any] = {"input": draw.floats(shape), "size": size}
    if "variance" in draw.op or "contrast" in draw.op:
        arguments |= {"bias": draw.number_of(0.1, 1.0), "epsilon": draw.number_of(0.01, 0.9)}
    if "response" in draw.op:
        arguments |= {
            "alpha": draw.number_of(0.1, 1.0),
            "beta": draw.number_of(0.2, 1.0),
            "bias": draw.number_of(0.5, 2.0),
        }
    return arguments


def _index(draw: Draw) -> dict[str, Any]:
    shape = _input(draw, draw.turn([1, 2]))
    size = [1, 1, *draw.shape(len(shape) - 2, 2, 3)]
    count = [extent // step for extent, step in zip(shape, size, strict=True)]
    window = {"size": size, "border": "constant", "padding": [(0, 0)] * len(shape), "stride": size}
    return {"shape": shape, "count": count, "window": window, "positions": int(np.prod(size))}


@recipe("sample")
def _sample(draw: Draw) -> dict[str, Any]:
    made = _index(draw)
    index = draw.integers(made["count"], "i64", 0, made["positions"] - 1)
    return {"input": draw.floats(made["shape"]), "index": index, **made["window"]}


@recipe("desample")
def _desample(draw: Draw) -> dict[str, Any]:
    made = _index(draw)
    index = draw.integers(made["count"], "i64", 0, made["positions"] - 1)
    return {"input": draw.floats(made["count"]), "index": index, **made["window"], "output_shape": made["shape"]}


@recipe("debox", dynamic="first")
def _debox(draw: Draw) -> dict[str, Any]:
    shape = [draw.integer(1, 2), draw.integer(1, 3), *draw.shape(draw.turn([1, 2]), 2, 6)]
    spatial = len(shape) - 2
    size = [1, 1, *draw.shape(spatial, 1, 3)]
    return {
        "input": draw.floats(shape),
        "size": size,
        "border": draw.turn(["constant", "constant", "constant", "ignore"]),
        "padding": [(0, 0)] * 2 + [(draw.integer(0, 1) if extent > 1 else 0, 0) for extent in size[2:]],
        "stride": [1, 1, *(draw.integer(1, 3) for _ in range(spatial))],
        "dilation": [1] * len(shape),
        "normalize": draw.number % 2 == 1,
    }


def _bias(draw: Draw, channels: int, kind: str) -> Any:
    return draw.turn([None, draw.floats([1, channels], kind), draw.number_of(-1.0, 1.0)])


def _convolved(draw: Draw, transposed: bool) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the arguments of a convolution without its filters, and its counts of channels."""
    spatial = draw.turn([1, 2, 2, 1, 2])
    groups = draw.turn([1, 1, 2, 1, 3])
    inputs, outputs = groups * draw.integer(1, 3), groups * draw.integer(1, 3)
    shape = [draw.integer(1, 2), inputs, *draw.shape(spatial, 2 if transposed else 5, 9)]
    padding = [(draw.integer(0, 2), draw.integer(0, 2)) for _ in range(spatial)]
    stride = [draw.integer(1, 3) for _ in range(spatial)]
    border = "constant"
    match draw.number % 9:
        case 2 if not transposed:
            padding = []
        case 4 if not transposed:
            shape[-1], padding[-1], stride[-1] = 1, (1, 3), 1
        case 6:
            border = draw.pick(["replicate", "reflect", "ignore"]) if not transposed else "ignore"
        case 8 if not transposed:
            padding[-1] = (-1, 0)
    arguments: dict[str, Any] = {
        "input": draw.floats(shape, draw.turn(["f32", "f32", "f32", "f32", "f16"])),
        "border": border,
        "padding": padding,
        "stride": stride,
        "dilation": [draw.integer(1, 2) for _ in range(spatial)],
        "groups": 0 if groups == inputs and draw.flag() else groups,
    }
    if draw.number % 9 == 4 and not transposed:
        arguments["dilation"][-1] = 2  # the last element of the only window is after the end of its row
    return arguments, {"spatial": spatial, "groups": groups, "inputs": inputs, "outputs": outputs}


def _case(draw: Draw, base_arguments: dict[str, Any], filters: dict[str, Any], channels: int) -> Case:
    kind = "f16" if base_arguments["input"].dtype == np.float16 else "f32"
    weights = {name: array.astype(base_arguments["input"].dtype) for name, array in filters.items()}
    bias = _bias(draw, channels, kind)
    stored = frozenset(weights) | ({"bias"} if isinstance(bias, np.ndarray) else set())
    arguments = {
        "input": base_arguments["input"],
        **weights,
        **({} if bias is None else {"bias": bias}),
        **base_arguments,
    }
    dynamic: dict[str, int] = {}
    if draw.number % 4 == 3:
        dynamic = {"input": draw.pick([0, 2])}
    return Case(draw.op, arguments, stored, dynamic)


@recipe("conv")
def _conv(draw: Draw) -> Case:
    arguments, counts = _convolved(draw, False)
    window = draw.shape(counts["spatial"], 1, 3)
    if draw.number % 9 == 4:
        window[-1] = 3
    filters = draw.floats([counts["outputs"], counts["inputs"] // counts["groups"], *window])
    return _case(draw, arguments, {"filter": filters}, counts["outputs"])


@recipe("deconv")
def _deconv(draw: Draw) -> Case:
    arguments, counts = _convolved(draw, True)
    window = draw.shape(counts["spatial"], 3, 5)
    filters = draw.floats([counts["outputs"], counts["inputs"] // counts["groups"], *window])
    return _case(draw, arguments, {"filter": filters}, counts["outputs"])


@recipe("separable_conv", "separable_deconv")
def _separable(draw: Draw) -> Case:
    transposed = draw.op == "separable_deconv"
    arguments, counts = _convolved(draw, transposed)
    arguments["groups"] = 1
    window = draw.shape(counts["spatial"], 3 if transposed else 1, 4 if transposed else 3)
    inner, ones = counts["outputs"] if transposed else counts["inputs"], [1] * counts["spatial"]
    point = [counts["outputs"], counts["inputs"], *ones]
    filters = {"plane_filter": draw.floats([inner, 1, *window]), "point_filter": draw.floats(point)}
    return _case(draw, arguments, filters, counts["outputs"])
