"""Shapes, ranges, triangles and parts."""

import math

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.shape import (
    broadcast,
    downsample,
    dyn_slice,
    force_eval,
    one_hot,
    shape_of,
    tract_cast,
    tract_range,
    trilu,
)
from t2n_core.errors import SpecError

SQUARE = np.arange(1.0, 10.0).reshape(3, 3)


def test_cast_to_float16_rounds() -> None:
    result = tract_cast(np.asarray([2049.0, 70000.0]), "f16")
    assert result.dtype == np.float16
    assert result.tolist() == [2048.0, math.inf]


def test_shape_of() -> None:
    assert shape_of(np.zeros((2, 0, 5))).tolist() == [2, 0, 5]
    assert shape_of(np.zeros(())).shape == (0,)


def test_broadcast() -> None:
    assert broadcast(np.asarray([[1.0], [2.0]]), [2, 3]).tolist() == [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    assert broadcast(np.asarray([5.0]), [2, 1]).shape == (2, 1)
    with pytest.raises(SpecError, match=r"\(2,\) cannot be broadcast to \[3\]"):
        broadcast(np.zeros(2), [3])


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [((0, 5, 2), [0, 2, 4]), ((5, 0, -2), [5, 3, 1]), ((3, 3, 1), []), ((3, 0, 1), []), ((-2, 2, 3), [-2, 1])],
)
def test_range(bounds: tuple[int, int, int], expected: list[int]) -> None:
    result = tract_range(*bounds)
    assert result.dtype == np.int64
    assert result.tolist() == expected


def test_range_of_floats() -> None:
    bounds = (np.asarray(value) for value in (0.5, 2.0, 0.5))
    assert tract_range(*bounds).tolist() == [0.5, 1.0, 1.5]
    with pytest.raises(SpecError, match="the step is 0"):
        tract_range(0, 3, 0)


def test_one_hot() -> None:
    assert one_hot(np.asarray([2, -3, 7]), 1, 3, 0.5, 4.0).tolist() == [[0.5, 0.5, 4.0], [4.0, 0.5, 0.5], [0.5] * 3]
    assert one_hot(np.asarray([1, 0]), -1, 3).tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    assert one_hot(np.asarray([[1, 0]]), -2, 2).tolist() == [[[0.0, 1.0], [1.0, 0.0]]]
    assert one_hot(np.asarray([1, 0]), 0, 3).tolist() == [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("k", "upper", "expected"),
    [
        (0, True, [[1, 2, 3], [0, 5, 6], [0, 0, 9]]),
        (1, True, [[0, 2, 3], [0, 0, 6], [0, 0, 0]]),
        (-1, True, [[1, 2, 3], [4, 5, 6], [0, 8, 9]]),
        (0, False, [[1, 0, 0], [4, 5, 0], [7, 8, 9]]),
        (1, False, [[1, 2, 0], [4, 5, 6], [7, 8, 9]]),
        (-1, False, [[0, 0, 0], [4, 0, 0], [7, 8, 0]]),
    ],
)
def test_trilu(k: int, upper: bool, expected: list[list[int]]) -> None:
    assert trilu(SQUARE, np.asarray(k), upper).tolist() == expected


def test_trilu_of_each_matrix() -> None:
    batch = np.arange(1.0, 13.0).reshape(2, 2, 3)
    assert trilu(batch, 1, True).tolist() == [[[0, 2, 3], [0, 0, 6]], [[0, 8, 9], [0, 0, 12]]]
    assert trilu(np.swapaxes(batch, 1, 2), 0, False)[1].tolist() == [[7, 0], [8, 11], [9, 12]]


def test_trilu_drops_nan() -> None:
    assert trilu(np.asarray([[1.0, math.nan], [2.0, 3.0]]), 0, False).tolist() == [[1.0, 0.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    ("stride", "modulo", "expected"),
    [(2, 0, [0, 2, 4]), (2, 1, [1, 3]), (1, 2, [2, 3, 4]), (-1, 0, [4, 3, 2, 1, 0]), (-2, 0, [4, 2, 0]), (3, 7, [])],
)
def test_downsample(stride: int, modulo: int, expected: list[int]) -> None:
    assert downsample(np.arange(5), 0, stride, modulo).tolist() == expected


def test_downsample_begins_with_the_first_element() -> None:
    assert downsample(SQUARE, -1, 2).tolist() == [[1.0, 3.0], [4.0, 6.0], [7.0, 9.0]]
    assert downsample(SQUARE, 0, -2).tolist() == [[7.0, 8.0, 9.0], [1.0, 2.0, 3.0]]


def test_downsample_without_a_meaning() -> None:
    for stride, modulo in ((0, 0), (-1, 1)):
        with pytest.raises(SpecError, match=f"stride {stride} with modulo {modulo}"):
            downsample(np.arange(5), 0, stride, modulo)


def test_dyn_slice() -> None:
    assert dyn_slice(SQUARE, 1, np.asarray(3), 2, -1).tolist() == [[2.0, 3.0], [5.0, 6.0], [8.0, 9.0]]
    assert dyn_slice(SQUARE, 1, 1, 0, 0).shape == (0, 3)
    assert dyn_slice(SQUARE, 0, 2, 2, 0).tolist() == SQUARE[:2].tolist()
    for start, end, length in ((2, 1, -1), (0, 4, 4), (0, 2, 1), (-1, 1, 2)):
        with pytest.raises(SpecError, match="on an axis of 3"):
            dyn_slice(SQUARE, start, end, length, 0)


def test_force_eval() -> None:
    inputs = [np.asarray([at]) for at in (10, 20, 30)]
    assert force_eval(inputs, [2, 0]) is inputs[1]
    assert [int(array[0]) for array in force_eval(inputs, [1])] == [10, 30]
