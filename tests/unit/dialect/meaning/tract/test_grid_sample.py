"""Sampling of rows and blocks at the points of a grid, whose interpolation is known."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.resampling import grid_sample
from t2n_core.errors import SpecError

ROW = np.asarray([[[[10.0, 20.0, 30.0]]]])


def sampled(x: float, mode: str, padding: str, align: bool = False) -> float:
    return float(grid_sample(ROW, np.asarray([[[[x, 0.0]]]]), mode, padding, align)[0, 0, 0, 0])


@pytest.mark.parametrize(
    ("x", "mode", "padding", "align", "expected"),
    [
        (0.0, "bilinear", "zeros", False, 20.0),
        (1 / 3, "bilinear", "zeros", False, 25.0),
        (0.5, "bilinear", "zeros", True, 25.0),
        (1.0, "bilinear", "zeros", False, 15.0),
        (1.0, "bilinear", "zeros", True, 30.0),
        (5.0, "bilinear", "zeros", False, 0.0),
        (5.0, "bilinear", "border", False, 30.0),
        (4 / 3, "bilinear", "reflection", False, 30.0),
        (5 / 3, "bilinear", "reflection", False, 25.0),
        (2.0, "bilinear", "reflection", True, 20.0),
        (1 / 3, "nearest", "zeros", False, 30.0),
        (-1 / 3, "nearest", "zeros", False, 10.0),
        (0.0, "bicubic", "zeros", False, 20.0),
        (2.0, "bicubic", "border", False, 30.0),
    ],
)
def test_grid_sample(x: float, mode: str, padding: str, align: bool, expected: float) -> None:
    assert sampled(x, mode, padding, align) == pytest.approx(expected)


def test_the_last_coordinate_is_that_of_the_first_axis() -> None:
    image = np.asarray([[[[1.0, 2.0], [3.0, 4.0]]]])
    result = grid_sample(image, np.asarray([[[[1.0, -1.0]]]]), "nearest", "border", True)
    assert result.ravel().tolist() == [2.0]


def test_unknown_words_of_a_grid() -> None:
    for arguments in (("cubic",), ("nearest", "wrap")):
        with pytest.raises(SpecError, match="no grid is sampled by"):
            grid_sample(ROW, np.zeros((1, 1, 1, 2)), *arguments)
    with pytest.raises(SpecError, match="`bicubic` for 1 axes"):
        grid_sample(ROW[:, :, 0], np.zeros((1, 1, 1)), "bicubic")


@pytest.mark.parametrize(
    ("place", "mode", "padding", "expected"),
    [
        (-0.25, "bilinear", "border", 10.0),
        (-4.0, "bilinear", "border", 10.0),
        (-0.25, "bilinear", "zeros", 7.5),
        (2.25, "bilinear", "zeros", 22.5),
        (7.0, "bilinear", "reflection", 20.0),
        (-4.0, "bilinear", "reflection", 30.0),
        (4.5, "bilinear", "reflection", 15.0),
        (5.0, "bilinear", "reflection", 10.0),
        (-0.25, "bilinear", "reflection", 10.0),
        (2.25, "bilinear", "reflection", 30.0),
        (-1.5, "bilinear", "reflection", 15.0),
        (0.6, "nearest", "zeros", 20.0),
        (0.4, "nearest", "zeros", 10.0),
        (-0.6, "nearest", "zeros", 0.0),
        (2.6, "nearest", "border", 30.0),
        (3.6, "nearest", "reflection", 20.0),
        (0.25, "bicubic", "zeros", 12.96875),
        (0.25, "bicubic", "border", 11.9140625),
        (0.25, "bicubic", "reflection", 11.9140625),
        (1.25, "bicubic", "zeros", 24.375),
        (1.25, "bicubic", "border", 23.3203125),
        (1.25, "bicubic", "reflection", 23.3203125),
        (2.25, "bicubic", "border", 31.0546875),
        (2.25, "bicubic", "reflection", 31.40625),
    ],
)
def test_places_within_the_row_and_beyond_it(place: float, mode: str, padding: str, expected: float) -> None:
    assert sampled((2 * place + 1) / 3 - 1, mode, padding) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("place", "mode", "padding", "expected"),
    [
        (3.5, "bilinear", "reflection", 15.0),
        (5.0, "bilinear", "reflection", 20.0),
        (-1.25, "bilinear", "reflection", 22.5),
        (0.0, "bilinear", "reflection", 10.0),
        (0.25, "bicubic", "reflection", 10.859375),
        (1.25, "bicubic", "reflection", 23.671875),
        (-0.25, "bilinear", "border", 10.0),
    ],
)
def test_places_by_the_centres_of_the_corners(place: float, mode: str, padding: str, expected: float) -> None:
    assert sampled(place - 1, mode, padding, True) == pytest.approx(expected)


def test_corners_are_edges_by_default() -> None:
    grid = np.asarray([[[[-0.5, 0.0]]]])
    assert grid_sample(ROW, grid).ravel().tolist() == pytest.approx([12.5])
    assert grid_sample(ROW, grid, align_corners=True).ravel().tolist() == pytest.approx([15.0])


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_each_batch_has_its_points(axes: int) -> None:
    extents = (4, 2, 3)[:axes]
    images = np.arange(2.0 * 5 * np.prod(extents)).reshape(2, 5, *extents)
    rng = np.random.default_rng(1)
    points = np.stack([rng.integers(0, extent, (2, 6, 1, 1)[: axes + 1]) for extent in extents], axis=-1)
    grid = points[..., ::-1] * 2.0 / (np.asarray(extents[::-1]) - 1.0) - 1.0
    for mode in ("nearest", "bilinear"):
        result = grid_sample(images, grid, mode, "zeros", True)
        assert result.shape == (2, 5, *points.shape[1:-1])
        for batch, *at in np.ndindex(*points.shape[:-1]):
            expected = images[(batch, slice(None), *points[(batch, *at)])]
            np.testing.assert_allclose(result[(batch, slice(None), *at)], expected, atol=1e-9)


def test_an_axis_of_one_element() -> None:
    single = np.asarray([[[[7.0]]]])
    for align in (False, True):
        result = grid_sample(single, np.asarray([[[[0.0, 0.0], [3.0, -9.0]]]]), "bilinear", "reflection", align)
        assert result.ravel().tolist() == [7.0, 7.0]
