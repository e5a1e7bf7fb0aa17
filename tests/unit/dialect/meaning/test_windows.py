"""Windows over axes of different extents: their counts, their places, and the padding around them."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.dialect.meaning.windows import Windows, padded, windows_of

WINDOWS = Windows((3, 2), ((1, 2), (0, 1)), (2, 3), (2, 1))


def test_the_span_has_the_gaps_of_the_dilation() -> None:
    assert WINDOWS.span == (5, 2)
    assert Windows((1, 4), (), (1, 1), (7, 3)).span == (1, 10)


def test_the_count_is_rounded_down() -> None:
    assert WINDOWS.count((7, 5)) == (3, 2)
    assert WINDOWS.count((6, 4)) == (3, 2)
    assert WINDOWS.count((5, 3)) == (2, 1)
    assert WINDOWS.count((2, 1)) == (1, 1)


def test_an_empty_axis_has_no_windows() -> None:
    plain = Windows((3,), ((0, 0),), (1,), (1,))
    assert plain.count((0,)) == (0,)
    assert plain.count((3,)) == (1,)
    assert Windows((1,), ((0, 0),), (1,), (1,)).count((0,)) == (0,)


@pytest.mark.parametrize("extents", [(1, 1), (7, 0), (2, 5)])
def test_a_window_must_fit_on_each_axis(extents: tuple[int, int]) -> None:
    narrow = Windows((3, 2), ((0, 0), (0, 1)), (1, 1), (1, 1))
    if extents == (7, 0):
        assert narrow.count(extents) == (5, 0)
    else:
        with pytest.raises(ValueError, match=r"a window of \[3, 2\] is larger than"):
            narrow.count(extents)


def test_offsets_are_in_row_major_order() -> None:
    assert list(WINDOWS.offsets()) == [(0, 0), (0, 1), (2, 0), (2, 1), (4, 0), (4, 1)]


def test_the_places_of_an_offset() -> None:
    assert WINDOWS.places((2, 1), (3, 2)) == (slice(2, 7, 2), slice(1, 5, 3))
    assert WINDOWS.places((4, 0), (1, 0)) == (slice(4, 5, 2), slice(0, 0, 3))


@pytest.mark.parametrize(
    ("extent", "size", "stride", "dilation", "expected"),
    [
        (7, 3, 2, 1, (1, 1)),
        (5, 2, 1, 2, (1, 1)),
        (4, 2, 1, 1, (0, 1)),
        (5, 4, 2, 1, (1, 2)),
        (6, 1, 3, 1, (0, 0)),
        (6, 2, 4, 1, (0, 0)),
        (3, 5, 1, 2, (4, 4)),
        (9, 2, 5, 5, (1, 1)),
    ],
)
def test_the_padding_that_keeps_the_extent_over_the_stride(
    extent: int, size: int, stride: int, dilation: int, expected: tuple[int, int]
) -> None:
    windows = windows_of([extent], [size], None, [stride], [dilation])
    assert windows.padding == (expected,)
    assert windows.count([extent]) == (-(-extent // stride),)
    assert windows_of([extent], [size], [], [stride], [dilation]) == windows


def test_strides_and_dilations_are_1_by_default() -> None:
    assert windows_of([4, 4], [2, 3], [(1, 0), (0, 2)], None, []) == Windows((2, 3), ((1, 0), (0, 2)), (1, 1), (1, 1))


@pytest.mark.parametrize(
    "arguments",
    [
        ([4], [2], [(0, 0)] * 2, [1], [1]),
        ([4], [2], [(0, 0)], [1, 1], [1]),
        ([4], [2], [(0, 0)], [1], [1, 1]),
        ([4], [2, 2], [(0, 0)], [1], [1]),
        ([4, 4], [2], [(0, 0)], [1], [1]),
    ],
)
def test_each_axis_has_its_amounts(arguments: tuple[list[int], ...]) -> None:
    with pytest.raises(ValueError, match=r"do not all have|zip"):
        windows_of(*arguments)  # type: ignore[arg-type]


ROWS = np.asarray([[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    ("padding", "border", "expected"),
    [
        ([(1, 0), (0, 2)], "constant", [[9, 9, 9, 9, 9], [1, 2, 3, 9, 9], [4, 5, 6, 9, 9]]),
        ([(0, 1), (1, 0)], "ignore", [[9, 1, 2, 3], [9, 4, 5, 6], [9, 9, 9, 9]]),
        ([(0, 0), (-1, 2)], "constant", [[2, 3, 9, 9], [5, 6, 9, 9]]),
        ([(0, 0), (2, -1)], "replicate", [[1, 1, 1, 2], [4, 4, 4, 5]]),
        ([(0, 0), (2, -1)], "replicated", [[1, 1, 1, 2], [4, 4, 4, 5]]),
        ([(0, 1), (-1, 1)], "reflect-even", [[2, 3, 3], [5, 6, 6], [5, 6, 6]]),
        ([(1, 0), (1, 1)], "reflect", [[5, 4, 5, 6, 5], [2, 1, 2, 3, 2], [5, 4, 5, 6, 5]]),
        ([(-1, 0), (0, -2)], "reflect", [[4]]),
        ([(0, -1), (-1, -1)], "no border", [[2]]),
    ],
)
def test_padding(padding: list[tuple[int, int]], border: str, expected: list[list[int]]) -> None:
    assert padded(ROWS, padding, border, 9).tolist() == expected


def test_padding_is_0_by_default() -> None:
    assert padded(ROWS[0], [(1, 1)], "constant").tolist() == [0, 1, 2, 3, 0]
