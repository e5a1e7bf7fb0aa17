"""Gathering and scattering, with indices from the end and several updates at one place."""

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.gathering import gather, gather_elements, gather_nd, scatter_elements, scatter_nd
from t2n_core.errors import SpecError

TABLE = np.arange(12).reshape(3, 4)


def test_gather() -> None:
    assert gather(TABLE, np.asarray([-1, 0]), 0).tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
    assert gather(TABLE, np.asarray(2), 1).tolist() == [2, 6, 10]
    assert gather(TABLE, np.asarray([[0, 1]]), 1).shape == (3, 1, 2)
    with pytest.raises(SpecError, match="an index from 0 to 3 on an axis of extent 3"):
        gather(TABLE, np.asarray([0, 3]), 0)
    with pytest.raises(SpecError, match="an index from -4 to 0 on an axis of extent 3"):
        gather(TABLE, np.asarray([0, -4]), 0)


def test_gather_elements() -> None:
    assert gather_elements(TABLE, np.asarray([[0, -1], [1, 1]]), 1).tolist() == [[0, 3], [5, 5]]
    assert gather_elements(TABLE, np.asarray([[2, 0, 1]]), 0).tolist() == [[8, 1, 6]]


def test_gather_nd() -> None:
    assert gather_nd(TABLE, np.asarray([[0, 1], [2, -1]]), 0).tolist() == [1, 11]
    assert gather_nd(TABLE, np.asarray([[1]]), 0).tolist() == [[4, 5, 6, 7]]
    assert gather_nd(TABLE, np.asarray([[3], [0], [1]]), 1).tolist() == [3, 4, 9]


def test_gather_nd_within_batches() -> None:
    blocks = np.arange(24).reshape(2, 3, 4)
    pairs = np.asarray([[[0, 1], [2, -1], [1, 2]], [[1, 0], [-1, 3], [0, -4]]])
    assert gather_nd(blocks, pairs, 1).tolist() == [[1, 11, 6], [16, 23, 12]]
    assert gather_nd(blocks, pairs[..., :1], 1)[1].tolist() == [[16, 17, 18, 19], [20, 21, 22, 23], [12, 13, 14, 15]]
    single = np.asarray([[[0], [1], [2]], [[3], [-1], [0]]])
    assert gather_nd(blocks, single, 2).tolist() == [[0, 5, 10], [15, 19, 20]]
    nested = np.asarray([[[[3], [0]]], [[[-1], [1]]], [[[2], [2]]]])
    assert gather_nd(TABLE, nested, 1).tolist() == [[[3, 0]], [[7, 5]], [[10, 10]]]


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [("none", [5, 1, 2]), ("add", [7, 1, 2]), ("mul", [0, 1, 2]), ("min", [0, 1, 2]), ("max", [5, 1, 2])],
)
def test_scatter_elements(reduction: str, expected: list[int]) -> None:
    result = scatter_elements(np.arange(3), np.asarray([0, -3]), np.asarray([2, 5]), 0, reduction)
    assert result.tolist() == expected


def test_scatter_nd() -> None:
    result = scatter_nd(TABLE, np.asarray([[1], [-1]]), np.full((2, 4), 50))
    assert result.tolist() == [[0, 1, 2, 3], [50] * 4, [50] * 4]
    result = scatter_nd(TABLE, np.asarray([[0, 1], [0, 1]]), np.asarray([10, 20]), "add")
    assert result[0].tolist() == [0, 31, 2, 3]
    assert TABLE[0, 1] == 1


def test_scatter_nd_at_a_table_of_places() -> None:
    places = np.asarray([[[0, 0], [0, 1], [1, -1]], [[2, 3], [1, 0], [0, 1]]])
    result = scatter_nd(TABLE, places, np.asarray([[10, 20, 30], [40, 50, 60]]))
    assert result.tolist() == [[10, 60, 2, 3], [50, 5, 6, 30], [8, 9, 10, 40]]
    result = scatter_nd(TABLE, np.asarray([[[1], [1], [0]]]), np.asarray([[[2] * 4, [5] * 4, [3] * 4]]), "mul")
    assert result.tolist() == [[0, 3, 6, 9], [40, 50, 60, 70], [8, 9, 10, 11]]


def test_scatter_elements_on_the_second_axis() -> None:
    result = scatter_elements(TABLE, np.asarray([[3, -4], [1, 1]]), np.asarray([[7, 8], [2, 3]]), -1, "mul")
    assert result.tolist() == [[0, 1, 2, 21], [4, 30, 6, 7], [8, 9, 10, 11]]


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(SpecError, match="no reduction is called 'mean'"):
        scatter_elements(TABLE, np.zeros((1, 1), int), np.zeros((1, 1), int), 0, "mean")


def test_a_wider_update_widens_the_result() -> None:
    result = scatter_nd(np.zeros(2, dtype=np.int32), np.asarray([[1]]), np.asarray([2**40]))
    assert result.tolist() == [0, 2**40]
