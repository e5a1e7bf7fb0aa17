"""Lookups, trees, places and boxes."""

import math

import numpy as np
import pytest

from t2n_core.dialect.meaning.onnx.detection import non_max_suppression, non_zero
from t2n_core.dialect.meaning.onnx.lookup import direct_lookup, reverse_lookup
from t2n_core.dialect.meaning.onnx.trees import tree_ensemble_classifier
from t2n_core.errors import SpecError


def test_direct_lookup() -> None:
    result = direct_lookup(np.asarray([0, 2, 3, -1], dtype=np.int32), np.asarray([7, 8, 9]), np.asarray(-5))
    assert result.tolist() == [7, 9, -5, -5]
    assert direct_lookup(np.asarray([0], dtype=np.int32), np.asarray([], dtype=int), np.asarray(-5)).tolist() == [-5]


def test_reverse_lookup() -> None:
    result = reverse_lookup(np.asarray([[8, 7], [1, 7]]), np.asarray([7, 8, 7]), -1)
    assert result.dtype == np.int32
    assert result.tolist() == [[1, 0], [-1, 0]]
    assert reverse_lookup(np.asarray([8]), np.asarray([], dtype=int), -1).tolist() == [-1]


def bits(value: float) -> int:
    return int(np.asarray([value], dtype=np.float32).view(np.uint32)[0])


def ensemble(values: list[float], comparison: int, how: str = "SUM", trees: int = 1) -> list[list[float]]:
    """Scores of two classes from equal trees: -1 and -3 for class 0 where it holds, else 4 for class 1."""
    nodes = np.asarray([[0, 1, 2, bits(0.5), comparison], [0, 2, 0, 0, 0], [2, 3, 0, 0, 0]], dtype=np.uint32)
    leaves = np.asarray([[0, bits(-1.0)], [0, bits(-3.0)], [1, bits(4.0)]], dtype=np.uint32)
    roots = np.zeros(trees, dtype=np.uint32)
    return tree_ensemble_classifier(np.asarray(values)[:, None], roots, nodes, leaves, 0, 2, how).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("comparison", "holds"),
    [
        (1, [False, True, False]),
        (2, [True, False, True]),
        (3, [True, False, False]),
        (4, [False, False, True]),
        (5, [True, True, False]),
        (6, [False, True, True]),
    ],
)
def test_comparisons(comparison: int, holds: list[bool]) -> None:
    result = ensemble([0.0, 0.5, 1.0], comparison)
    assert result == [[-4.0, 0.0] if is_true else [0.0, 4.0] for is_true in holds]


def test_nan_holds_only_by_its_flag() -> None:
    assert ensemble([math.nan], 2) == [[0.0, 4.0]]
    assert ensemble([math.nan], 0x100 + 3) == [[-4.0, 0.0]]


@pytest.mark.parametrize(("how", "expected"), [("SUM", -8.0), ("AVERAGE", -2.0), ("MAX", -1.0), ("MIN", -3.0)])
def test_aggregates(how: str, expected: float) -> None:
    assert ensemble([0.0], 3, how, trees=2) == [[expected, 0.0]]
    with pytest.raises(SpecError, match="no aggregate is called 'MEDIAN'"):
        ensemble([0.0], 3, "MEDIAN")


def test_non_zero() -> None:
    assert non_zero(np.asarray([[0.0, -0.0, 3.0], [math.nan, 0.0, 1.0]])).tolist() == [[0, 1, 1], [2, 0, 2]]
    assert [non_zero(np.asarray(value)).shape for value in (5, 1, 0, -0.0)] == [(0, 1), (0, 1), (0, 0), (0, 0)]
    assert non_zero(np.asarray([False, False])).shape == (1, 0)


BOXES = np.asarray([[[0.0, 0.0, 2.0, 2.0], [1.0, 0.0, 3.0, 2.0], [9.0, 9.0, 8.0, 8.0], [0.0, 0.0, 2.0, 2.0]]])
"""The second one shares a third with the first; the last is the first."""
SCORES = np.asarray([[[0.5, 0.9, 0.1, 0.5]]])


@pytest.mark.parametrize(
    ("most", "overlap", "least", "expected"),
    [
        (9, 0.3, 0.0, [1, 2]),
        (9, 0.4, 0.0, [1, 0, 2]),
        (9, 0.4, 0.1, [1, 0]),
        (9, 1.0, 0.0, [1, 0, 3, 2]),
        (1, 0.4, 0.0, [1]),
        (0, 0.4, 0.0, []),
    ],
)
def test_non_max_suppression(most: int, overlap: float, least: float, expected: list[int]) -> None:
    indices = non_max_suppression(BOXES, SCORES, np.asarray(most), np.asarray(overlap), np.asarray(least))
    assert indices.dtype == np.int64
    assert indices.tolist() == [[0, 0, index] for index in expected]


def test_boxes_by_their_centre() -> None:
    centred = np.asarray([[[1.0, 1.0, 2.0, 2.0], [2.0, 1.0, 2.0, 2.0]]])
    scores = np.asarray([[[0.5, 0.9]]])
    assert len(non_max_suppression(centred, scores, 9, 0.3, None, 1)) == 1
    assert len(non_max_suppression(centred, scores, 9, 0.4, None, 1)) == 2


@pytest.mark.parametrize("scale", [1.0, 0.1, -1.0])
def test_the_share_in_common_decides(scale: float) -> None:
    """The first box covers 4 by 6, the second 6 by 4, and they share 3 by 2: 6 of 42."""
    corners = scale * np.asarray([[[8.0, 17.0, 12.0, 23.0], [15.0, 25.0, 9.0, 21.0]]])
    centred = scale * np.asarray([[[10.0, 20.0, 4.0, 6.0], [12.0, 23.0, 6.0, 4.0]]])
    centred[..., 2:] = np.abs(centred[..., 2:])
    scores = np.asarray([[[0.5, 0.9]]])
    for boxes, by_centre in ((corners, 0), (centred, 1)):
        assert len(non_max_suppression(boxes, scores, 9, 6 / 42 + 1e-9, None, by_centre)) == 2
        assert len(non_max_suppression(boxes, scores, 9, 6 / 42 - 1e-9, None, by_centre)) == 1


@pytest.mark.parametrize(
    "other", [[5.0, 1.0, 7.0, 3.0], [1.0, 5.0, 3.0, 7.0], [2.0, 0.0, 4.0, 2.0], [5.0, 5.0, 6.0, 6.0]]
)
def test_boxes_that_share_nothing_stay(other: list[float]) -> None:
    boxes = np.asarray([[[0.0, 0.0, 2.0, 2.0], other]])
    assert non_max_suppression(boxes, np.asarray([[[0.5, 0.9]]]), 9, 0.0).tolist() == [[0, 0, 1], [0, 0, 0]]


def test_no_box_is_taken_and_none_may_overlap_by_default() -> None:
    boxes = np.asarray([[[0.0, 0.0, 10.0, 1.0], [9.0, 0.0, 19.0, 1.0]]])
    scores = np.asarray([[[0.9, 0.5]]])
    assert non_max_suppression(boxes, scores).shape == (0, 3)
    assert non_max_suppression(boxes, scores, 9).tolist() == [[0, 0, 0]]


def test_each_batch_has_its_boxes_and_each_class_its_scores() -> None:
    boxes = np.asarray([[[0.0, 0.0, 1.0, 1.0]] * 2, [[0.0, 0.0, 1.0, 1.0], [2.0, 2.0, 3.0, 3.0]]])
    scores = np.asarray([[[0.5, 0.9], [0.8, 0.3], [-0.1, -0.2]], [[0.4, 0.6], [0.2, 0.1], [0.7, -0.5]]])
    indices = non_max_suppression(boxes, scores, 2, 0.5, 0.15)
    assert indices.tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 1], [1, 0, 0], [1, 1, 0], [1, 2, 0]]
    assert len(non_max_suppression(boxes, scores, 2, 0.5)) == 9
