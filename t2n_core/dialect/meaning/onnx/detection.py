"""Results whose size depends on the values: the places of elements, and the boxes that remain."""

from __future__ import annotations

import numpy as np

from t2n_core.dialect.arrays import Array
from t2n_core.dialect.registry import defines


@defines("tract_onnx_non_zero", result="int64")
def non_zero(input: Array, count_symbol: str = "") -> Array:
    """Return the coordinates of the elements that are not 0, as columns in row-major order.

    Shapes: [rank, count]. `count_symbol` names the count for the engine's analysis. Domain: numbers and booleans.
    Special values: NaN is not 0; -0 is 0; a scalar has 0 coordinates.
    Source: ONNX NonZero-13; tract onnx-opl/src/non_zero.rs.
    """
    if not input.ndim:
        return np.zeros([0, int(bool(input != 0))], dtype=np.int64)
    return np.asarray(np.nonzero(input), dtype=np.int64).reshape(input.ndim, -1)


def _corners(box: Array, centred: bool) -> tuple[float, float, float, float]:
    """Return the least and the greatest coordinate of a box on each of its axes."""
    first, second, third, fourth = (float(value) for value in box)
    if centred:
        return first - third / 2, first + third / 2, second - fourth / 2, second + fourth / 2
    return min(first, third), max(first, third), min(second, fourth), max(second, fourth)


def _overlap(box: Array, other: Array, centred: bool) -> float:
    """Return the area that two boxes share, divided by the area that they cover."""
    a, b = _corners(box, centred), _corners(other, centred)
    shared = [min(a[at + 1], b[at + 1]) - max(a[at], b[at]) for at in (0, 2)]
    if min(shared) <= 0:
        return 0.0
    common = shared[0] * shared[1]
    total = (a[1] - a[0]) * (a[3] - a[2]) + (b[1] - b[0]) * (b[3] - b[2]) - common
    return common / total if total > 0 else 0.0


@defines("tract_onnx_non_max_suppression", result="int64")
def non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array | int = 0,
    iou_threshold: Array | float = 0.0,
    score_threshold: Array | float | None = None,
    center_point_box: int = 0,
) -> Array:
    """Return, for each batch and class, the boxes of high score that do not overlap a box of higher score.

    Formula: the boxes whose score is above `score_threshold` are taken by falling score, of equal ones the lower index
    first; one is dropped where its area in common with a box that was taken, divided by the area of both together, is
    above `iou_threshold`; at most `max_output_boxes_per_class` are taken, and none where that is 0. Shapes: boxes
    [batch, n, 4]: two opposite corners (y, x, y, x), or with `center_point_box` the centre and size (x, y, width,
    height); scores [batch, classes, n]; result [count, 3]: batch, class and index of the box.
    Domain: `iou_threshold` is between 0 and 1; raises ValueError.
    Source: ONNX NonMaxSuppression-11; tract onnx-opl/src/non_max_suppression.rs.
    """
    most = int(np.asarray(max_output_boxes_per_class).reshape(()))
    limit = float(np.asarray(iou_threshold).reshape(()))
    least = None if score_threshold is None else float(np.asarray(score_threshold).reshape(()))
    if not 0 <= limit <= 1:
        raise ValueError(f"the threshold of the overlap is {limit:.3g}, not between 0 and 1")
    selected: list[tuple[int, int, int]] = []
    for batch in range(scores.shape[0]):
        for label in range(scores.shape[1]):
            order = np.argsort(-scores[batch, label], kind="stable")
            survivors: list[int] = []
            for index in (int(at) for at in order if least is None or scores[batch, label, at] > least):
                if len(survivors) == most:
                    break
                others = (_overlap(boxes[batch, index], boxes[batch, box], bool(center_point_box)) for box in survivors)
                if all(overlap <= limit for overlap in others):
                    survivors.append(index)
            selected += [(batch, label, index) for index in survivors]
    return np.asarray(selected, dtype=np.int64).reshape(-1, 3)
