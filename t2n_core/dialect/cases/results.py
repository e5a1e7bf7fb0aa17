"""Cases of operators of ONNX that classify, translate and detect."""

from __future__ import annotations

from typing import Any

import numpy as np

from t2n_core.dialect.arrays import Array
from t2n_core.dialect.cases.draw import Draw, arguments
from t2n_core.dialect.cases.recipes import recipe


@recipe("tract_onnx_non_zero")
def _non_zero(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(1, 4)), draw.turn(["f32", "i64", "bool", "f16"])
    values = draw.flags(shape) if kind == "bool" else draw.ties(shape, kind)
    return {"input": values, "count_symbol": "count"}


@recipe("tract_onnx_ml_direct_lookup", constant=("values", "fallback"))
def _direct_lookup(draw: Draw) -> dict[str, Any]:
    count = draw.integer(1, 6)
    return {
        "input": draw.integers(draw.shape(draw.integer(1, 3)), "i32", -3, count + 2),
        "values": draw.integers([count], "i64", -99, 99),
        "fallback": np.array(draw.integer(-9, 9)),
    }


@recipe("tract_onnx_ml_reverse_lookup", constant=("keys",))
def _reverse_lookup(draw: Draw) -> dict[str, Any]:
    return {
        "input": draw.integers(draw.shape(draw.integer(1, 3)), "i64", -5, 5),
        "keys": draw.integers([draw.integer(1, 6)], "i64", -5, 5),
        "fallback": draw.integer(-9, -1),
    }


def _bits(value: float) -> int:
    return int(np.asarray([value], dtype=np.float32).view(np.uint32)[0])


def _trees(draw: Draw, features: int, classes: int) -> dict[str, Array]:
    """Return trees of one branch, each with two leaves."""
    trees: list[int] = []
    nodes: list[list[int]] = []
    leaves: list[list[int]] = []
    for _ in range(draw.integer(1, 4)):
        root, first = len(nodes), len(leaves)
        comparison = draw.integer(1, 6) + (0x100 if draw.flag() else 0)
        threshold = _bits(float(draw.integer(-1, 1)))
        nodes.append([draw.integer(0, features - 1), root + 1, root + 2, threshold, comparison])
        middle = first + draw.integer(1, 2)
        last = middle + draw.integer(1, 2)
        nodes += [[first, middle, 0, 0, 0], [middle, last, 0, 0, 0]]
        leaves += [[draw.integer(0, classes - 1), _bits(draw.number_of(-2.0, 2.0))] for _ in range(first, last)]
        trees.append(root)
    return {
        "trees": np.asarray(trees, dtype=np.uint32),
        "nodes": np.asarray(nodes, dtype=np.uint32),
        "leaves": np.asarray(leaves, dtype=np.uint32),
    }


@recipe("tract_onnx_ml_tree_ensemble_classifier", constant=("trees", "nodes", "leaves"))
def _tree_ensemble(draw: Draw) -> dict[str, Any]:
    features, classes = draw.integer(1, 4), draw.integer(1, 3)
    values = draw.ties([draw.integer(1, 6), features])
    if draw.number % 3 == 2:
        values[draw.integer(0, len(values) - 1), 0] = np.nan
    return {
        "input": values,
        **_trees(draw, features, classes),
        "max_used_feature": features - 1,
        "n_classes": classes,
        "aggregate_fn": draw.turn(["SUM", "AVERAGE", "MAX", "MIN"]),
    }


@recipe("tract_onnx_non_max_suppression", constant=("max_output_boxes_per_class", "iou_threshold", "score_threshold"))
def _non_max_suppression(draw: Draw) -> dict[str, Any]:
    batch, classes, count = draw.integer(1, 2), draw.integer(1, 3), draw.integer(1, 7)
    centred = draw.turn([None, 0, 1])
    boxes = draw.floats([batch, count, 4])
    if centred:
        boxes[..., 2:] = np.abs(boxes[..., 2:]) + np.float32(0.5)
    return arguments(
        boxes=boxes,
        scores=draw.floats([batch, classes, count]),
        max_output_boxes_per_class=np.array(draw.turn([2, 1, 3, 5, 0])),
        iou_threshold=np.array(draw.number_of(0.1, 0.6), dtype=np.float32),
        score_threshold=np.array(draw.number_of(-1.0, 0.5), dtype=np.float32),
        center_point_box=centred,
    )
