"""Reshaped, joined, split and sliced tensors of different extents."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.dialect.meaning.standard.shape import (
    concat,
    reshape,
    split,
    squeeze,
    stack,
    tile,
    transpose,
    unsqueeze,
    unstack,
)
from t2n_core.dialect.meaning.standard.slicing import gather, pad, slice_axes

BLOCKS = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (([4, -1],), (4, 6)),
        (([-1],), (24,)),
        (([0, -1],), (2, 12)),
        (([0, 0, -1, 2],), (2, 3, 2, 2)),
        (([-1, 0],), (8, 3)),
        (([6, -1], 1, 2), (2, 6, 2)),
        (([3, -1], 1, -1), (2, 3, 4)),
        (([-1, 2], 2), (2, 3, 2, 2)),
        (([-1], 0, 2), (6, 4)),
        (([0, 2, 2], 1, 2), (2, 3, 2, 2)),
        (([], 1, 0), (2, 3, 4)),
        (([1], 3), (2, 3, 4, 1)),
    ],
)
def test_reshape(arguments: tuple[list[int], ...], expected: tuple[int, ...]) -> None:
    result = reshape(BLOCKS, *arguments)  # type: ignore[arg-type]
    assert result.shape == expected
    assert result.ravel().tolist() == list(range(24))


@pytest.mark.parametrize("arguments", [([5, -1],), ([4, 5],), ([-1, 5], 1, 2), ([-1, -1],), ([2], 3)])
def test_other_elements_have_no_shape(arguments: tuple[list[int], ...]) -> None:
    with pytest.raises(ValueError, match="cannot become"):
        reshape(BLOCKS, *arguments)  # type: ignore[arg-type]


def test_axes() -> None:
    assert transpose(BLOCKS, [1, 0]).shape == (3, 2, 4)
    assert transpose(BLOCKS, [2, 0, 1])[3, 1, 2] == BLOCKS[1, 2, 3]
    assert unsqueeze(BLOCKS, [0, 3]).shape == (1, 2, 3, 1, 4)
    assert squeeze(BLOCKS[:1, :, :1], [0, 2]).tolist() == [0, 4, 8]
    assert tile(BLOCKS[0, :2, :1], [1, 3]).tolist() == [[0, 0, 0], [4, 4, 4]]


def test_split_and_unstack() -> None:
    parts = split(np.arange(14).reshape(1, 14), 1, [1, 3, 2, 1])
    assert [part.tolist() for part in parts] == [[[0, 1]], [[2, 3, 4, 5, 6, 7]], [[8, 9, 10, 11]], [[12, 13]]]
    assert [part.tolist() for part in unstack(BLOCKS[0], 1)] == [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]
    assert [part.shape for part in unstack(BLOCKS, 2)] == [(2, 3)] * 4
    assert [part.shape for part in split(BLOCKS, 1, [2, 1])] == [(2, 2, 4), (2, 1, 4)]


def test_concat_and_stack() -> None:
    assert concat([BLOCKS[0], BLOCKS[1, :1]], 0)[3].tolist() == [12, 13, 14, 15]
    assert stack([BLOCKS[0], BLOCKS[1]], 1)[2, 1].tolist() == [20, 21, 22, 23]
    assert concat([np.asarray([1], np.int8), np.asarray([2], np.int64)], 0).dtype == np.int8
    assert stack([np.asarray([1], np.int8), np.asarray([2], np.int64)], 0).dtype == np.int8


@pytest.mark.parametrize(
    ("begin", "end", "stride", "expected"),
    [
        (0, 0, 2, [0, 2, 4]),
        (1, 4, 2, [1, 3]),
        (1, -1, 2, [1, 3]),
        (4, 0, -2, [4, 2]),
        (9, -9, -2, [4, 2, 0]),
        (-2, 1, -1, [3, 2]),
        (3, 3, 2, []),
    ],
)
def test_slices(begin: int, end: int, stride: int, expected: list[int]) -> None:
    assert slice_axes(np.arange(5), [0], [begin], [end], [stride]).tolist() == expected
    rows = np.arange(10).reshape(2, 5)
    assert slice_axes(rows, [0, 1], [1, begin], [2, end], [1, stride]).tolist() == [[5 + at for at in expected]]


def test_gather_counts_along_its_axis() -> None:
    assert gather(BLOCKS[0], np.asarray([[3, 0]]), 1).tolist() == [[[3, 0]], [[7, 4]], [[11, 8]]]
    for indices in ([0, 3], [3, 0], [0, -1]):
        with pytest.raises(IndexError):
            gather(BLOCKS[0], np.asarray(indices), 0)
    assert gather(BLOCKS[0], np.zeros((2, 0), int), 1).shape == (3, 2, 0)


def test_pad_adds_0_by_default() -> None:
    assert pad(np.asarray([1.0]), [(1, 2)]).tolist() == [0.0, 1.0, 0.0, 0.0]
