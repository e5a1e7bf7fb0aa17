"""Reductions at ties, at infinities, and over empty axes."""

import math

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.reduction import (
    argmax_reduce_last,
    argmin_reduce_last,
    cumsum,
    log_softmax,
    product_reduce,
    softmax,
    topk,
)
from t2n_core.errors import SpecError

INF, NAN = math.inf, math.nan


def test_the_last_of_equal_elements() -> None:
    values = np.asarray([[3.0, 1.0, 3.0, 1.0], [-INF, -INF, -INF, -INF]])
    assert argmax_reduce_last(values, [1]).tolist() == [[2], [3]]
    assert argmin_reduce_last(values, [1]).tolist() == [[3], [3]]
    assert argmax_reduce_last(values, [0]).tolist() == [[0, 0, 0, 0]]
    assert argmax_reduce_last(np.asarray([[5, 7], [7, 5]]), [0, 1]).tolist() == [[2]]


def test_product() -> None:
    assert product_reduce(np.asarray([[2.0, 3.0], [-4.0, 5.0]]), [0]).tolist() == [[-8.0, 15.0]]
    assert product_reduce(np.zeros((2, 0)), [1]).tolist() == [[1.0], [1.0]]
    assert product_reduce(np.asarray([100, 3], dtype=np.int8), [0]).tolist() == [44]


@pytest.mark.parametrize(
    ("exclusive", "reverse", "expected"),
    [(False, False, [1, 3, 6]), (True, False, [0, 1, 3]), (False, True, [6, 5, 3]), (True, True, [5, 3, 0])],
)
def test_cumsum(exclusive: bool, reverse: bool, expected: list[int]) -> None:
    assert cumsum(np.asarray([1, 2, 3]), 0, exclusive, reverse).tolist() == expected
    assert cumsum(np.zeros((2, 0)), 1, exclusive, reverse).shape == (2, 0)


def test_softmax() -> None:
    result = softmax(np.asarray([[0.0, math.log(3.0)], [-INF, 1000.0], [-INF, -INF], [NAN, 0.0]]), [1])
    np.testing.assert_allclose(result, [[0.25, 0.75], [0.0, 1.0], [NAN, NAN], [NAN, NAN]])
    np.testing.assert_allclose(softmax(np.zeros((2, 3)), np.asarray([0, 1])), np.full((2, 3), 1 / 6))


def test_log_softmax() -> None:
    result = log_softmax(np.asarray([[0.0, math.log(3.0)], [-INF, 1000.0]]), [1])
    np.testing.assert_allclose(result, [[math.log(0.25), math.log(0.75)], [-INF, 0.0]])


def test_topk_takes_the_lower_index_of_equal_elements() -> None:
    values = np.asarray([2, 5, 5, 1, 2])
    greatest, indices = topk(values, np.asarray(3), 0, True)
    assert (greatest.tolist(), indices.tolist()) == ([5, 5, 2], [1, 2, 0])
    least, indices = topk(values, 3, 0, False)
    assert (least.tolist(), indices.tolist()) == ([1, 2, 2], [3, 0, 4])
    for count in (6, -1):
        with pytest.raises(SpecError, match=f"{count} elements of 5"):
            topk(values, count, 0, True)
    assert topk(values, 0, 0, True)[1].shape == (0,)
    assert topk(values, 5, 0, True)[1].tolist() == [1, 2, 0, 4, 3]


@pytest.mark.parametrize(("largest", "expected"), [(True, [[0, 2], [1, 0]]), (False, [[1, 2], [2, 0]])])
def test_topk_along_each_axis(largest: bool, expected: list[list[int]]) -> None:
    values = np.asarray([[5, 2, 4], [7, 9, 1]])
    top_values, indices = topk(values, 2, 1, largest)
    assert indices.tolist() == expected
    assert top_values.tolist() == [[values[row, column] for column in expected[row]] for row in range(2)]
    turned, places = topk(values.T, 2, -2, largest)
    assert (turned.T.tolist(), places.T.tolist()) == (top_values.tolist(), indices.tolist())


@pytest.mark.parametrize(("axis", "expected"), [(0, [[0, 0], [1, 2], [4, 6]]), (1, [[0, 1], [0, 3], [0, 5]])])
def test_an_exclusive_cumsum_along_each_axis(axis: int, expected: list[list[int]]) -> None:
    values = np.asarray([[1, 2], [3, 4], [5, 6]], dtype=np.int16)
    result = cumsum(values, axis, True, False)
    assert result.dtype == np.int16
    assert result.tolist() == expected
    assert cumsum(values[..., None, None], axis, True, False)[..., 0, 0].tolist() == expected
    assert np.flip(cumsum(np.flip(values, axis), axis, True, True), axis).tolist() == expected
