"""Resizing and sampling of lines, whose interpolation is known."""

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.resampling import core_resize, grid_sample, onnx_resize
from t2n_core.errors import SpecError

LINE = np.asarray([[[0.0, 10.0, 20.0, 30.0]]])


def resized(coordinates: str, to: int, interpolator: str = "linear", nearest: str = "floor") -> list[float]:
    found = core_resize(LINE, None, np.asarray([1, 1, to]), coordinates, interpolator, nearest)
    return [round(float(one), 4) for one in found.ravel()]


@pytest.mark.parametrize(
    ("coordinates", "wanted"),
    [
        ("half_pixel", [0.0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0]),
        ("asymmetric", [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 30.0]),
        ("align_corners", [round(30 * at / 7, 4) for at in range(8)]),
        ("pytorch_half_pixel", [0.0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0]),
        ("half_pixel_symmetric", [0.0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0]),
        ("tf_half_pixel_for_nn", [2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0, 30.0]),
    ],
)
def test_coordinates(coordinates: str, wanted: list[float]) -> None:
    assert resized(coordinates, 8) == pytest.approx(wanted, abs=1e-4)


def test_one_element() -> None:
    assert resized("half_pixel", 1) == [15.0]
    assert resized("pytorch_half_pixel", 1, "cubic") == [0.0]
    assert resized("align_corners", 1) == [0.0]


def test_nearest() -> None:
    assert resized("half_pixel", 2, "nearest", "floor") == [0.0, 20.0]
    assert resized("half_pixel", 2, "nearest", "round_prefer_ceil") == [10.0, 30.0]
    scales = np.asarray([1.0, 1.0, 0.5])
    ceil = onnx_resize(LINE, scales, None, "half_pixel", "nearest", "ceil")
    assert ceil.ravel().tolist() == [10.0, 30.0]
    assert onnx_resize(LINE, scales, None, "half_pixel", "nearest", "round_prefer_floor").ravel().tolist() == [
        0.0,
        20.0,
    ]


def test_cubic() -> None:
    # at 0.5 of a line the kernel of -0.75 weighs -0.09375, 0.59375, 0.59375, -0.09375
    scales = np.asarray([1.0, 1.0, 2.0])
    found = core_resize(np.asarray([[[0.0, 0.0, 1.0, 0.0]]]), scales, None, "asymmetric", "cubic").ravel()
    np.testing.assert_allclose(found, [0.0, -0.09375, 0.0, 0.59375, 1.0, 0.59375, 0.0, -0.09375])


def test_weights_outside_are_dropped_only_on_request() -> None:
    scales = np.asarray([1.0, 1.0, 2.0])
    line = np.asarray([[[0.0, 1.0, 0.0, 0.0]]])
    kept = onnx_resize(line, scales, None, "asymmetric", "cubic")[0, 0, 1]
    dropped = onnx_resize(line, scales, None, "asymmetric", "cubic", exclude_outside=True)[0, 0, 1]
    assert kept == pytest.approx(0.59375)
    assert dropped == pytest.approx(0.59375 / 1.09375)


def test_antialiasing_widens_the_kernel() -> None:
    found = onnx_resize(LINE, np.asarray([1.0, 1.0, 0.5]), None, "half_pixel", "linear", antialias=True).ravel()
    # at 0.5: weights 1, 3, 3, 1 over the places -1 to 2, of which -1 reads the edge
    np.testing.assert_allclose(found, [(3 * 10.0 + 20.0) / 8, (10.0 + 3 * 20.0 + 3 * 30.0 + 30.0) / 8])


def test_cropping() -> None:
    region = np.asarray([0.0, 0.0, 0.5, 1.0, 1.0, 1.5])
    found = onnx_resize(LINE, np.ones(3), region, "tf_crop_and_resize", "linear", extrapolation_value=-1.0)
    np.testing.assert_allclose(found.ravel(), [15.0, 25.0, -1.0, -1.0])


def test_words_and_sizes_that_do_not_fit() -> None:
    scales, sizes = np.ones(3), np.asarray([1, 1, 4])
    for arguments in ((scales, sizes), (None, None), (np.ones(2), None)):
        with pytest.raises(SpecError, match="one of `scales` and `sizes` is needed"):
            core_resize(LINE, *arguments)
    for words in (("middle",), ("half_pixel", "lanczos"), ("half_pixel", "nearest", "ceil")):
        with pytest.raises(SpecError):
            core_resize(LINE, 2 * scales, None, *words)


ROW = np.asarray([[[[10.0, 20.0, 30.0]]]])


def sampled(x: float, mode: str, padding: str, align: bool = False) -> float:
    return float(grid_sample(ROW, np.asarray([[[[x, 0.0]]]]), mode, padding, align)[0, 0, 0, 0])


@pytest.mark.parametrize(
    ("x", "mode", "padding", "align", "wanted"),
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
def test_grid_sample(x: float, mode: str, padding: str, align: bool, wanted: float) -> None:
    assert sampled(x, mode, padding, align) == pytest.approx(wanted)


def test_the_last_coordinate_is_that_of_the_first_axis() -> None:
    image = np.asarray([[[[1.0, 2.0], [3.0, 4.0]]]])
    found = grid_sample(image, np.asarray([[[[1.0, -1.0]]]]), "nearest", "border", True)
    assert found.ravel().tolist() == [2.0]


def test_unknown_words_of_a_grid() -> None:
    for arguments in (("cubic",), ("nearest", "wrap")):
        with pytest.raises(SpecError, match="no grid is sampled by"):
            grid_sample(ROW, np.zeros((1, 1, 1, 2)), *arguments)
    with pytest.raises(SpecError, match="`bicubic` for 1 axes"):
        grid_sample(ROW[:, :, 0], np.zeros((1, 1, 1)), "bicubic")
