"""Resizing of lines, whose interpolation is known."""

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.resampling import core_resize, cubic, onnx_resize
from t2n_core.errors import SpecError

LINE = np.asarray([[[0.0, 10.0, 20.0, 30.0]]])


def resized(coordinates: str, to: int, interpolator: str = "linear", nearest: str = "floor") -> list[float]:
    result = core_resize(LINE, None, np.asarray([1, 1, to]), coordinates, interpolator, nearest)
    return [round(float(value), 4) for value in result.ravel()]


@pytest.mark.parametrize(
    ("coordinates", "expected"),
    [
        ("half_pixel", [0.0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0]),
        ("asymmetric", [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 30.0]),
        ("align_corners", [round(30 * at / 7, 4) for at in range(8)]),
        ("pytorch_half_pixel", [0.0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0]),
        ("half_pixel_symmetric", [0.0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0]),
        ("tf_half_pixel_for_nn", [2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0, 30.0]),
    ],
)
def test_coordinates(coordinates: str, expected: list[float]) -> None:
    assert resized(coordinates, 8) == pytest.approx(expected, abs=1e-4)


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
    result = core_resize(np.asarray([[[0.0, 0.0, 1.0, 0.0]]]), scales, None, "asymmetric", "cubic").ravel()
    np.testing.assert_allclose(result, [0.0, -0.09375, 0.0, 0.59375, 1.0, 0.59375, 0.0, -0.09375])


def test_weights_outside_are_dropped_only_on_request() -> None:
    scales = np.asarray([1.0, 1.0, 2.0])
    line = np.asarray([[[0.0, 1.0, 0.0, 0.0]]])
    default = onnx_resize(line, scales, None, "asymmetric", "cubic")[0, 0, 1]
    dropped = onnx_resize(line, scales, None, "asymmetric", "cubic", exclude_outside=True)[0, 0, 1]
    assert default == pytest.approx(0.59375)
    assert dropped == pytest.approx(0.59375 / 1.09375)


def test_antialiasing_widens_the_kernel() -> None:
    result = onnx_resize(LINE, np.asarray([1.0, 1.0, 0.5]), None, "half_pixel", "linear", antialias=True).ravel()
    # at 0.5: weights 1, 3, 3, 1 over the places -1 to 2, of which -1 reads the edge
    np.testing.assert_allclose(result, [(3 * 10.0 + 20.0) / 8, (10.0 + 3 * 20.0 + 3 * 30.0 + 30.0) / 8])


def test_cropping() -> None:
    region = np.asarray([0.0, 0.0, 0.5, 1.0, 1.0, 1.5])
    result = onnx_resize(LINE, np.ones(3), region, "tf_crop_and_resize", "linear", extrapolation_value=-1.0)
    np.testing.assert_allclose(result.ravel(), [15.0, 25.0, -1.0, -1.0])


def test_words_and_sizes_that_do_not_fit() -> None:
    scales, sizes = np.ones(3), np.asarray([1, 1, 4])
    for arguments in ((scales, sizes), (None, None), (np.ones(2), None)):
        with pytest.raises(SpecError, match="one of `scales` and `sizes` is needed"):
            core_resize(LINE, *arguments)
    for words in (("middle",), ("half_pixel", "lanczos"), ("half_pixel", "nearest", "ceil")):
        with pytest.raises(SpecError):
            core_resize(LINE, 2 * scales, None, *words)


def test_the_cubic_kernel() -> None:
    distances = np.asarray([0.0, 0.25, -0.5, 1.0, -1.2, 1.5, 2.0, 2.5])
    np.testing.assert_allclose(
        cubic(distances, -0.75), [1.0, 0.87890625, 0.59375, 0.0, -0.096, -0.09375, 0.0, 0.0], atol=1e-15
    )
    np.testing.assert_allclose(cubic(distances[4:6], -0.5), [-0.064, -0.0625], atol=1e-15)


def scaled(
    coordinates: str, scale: float, interpolator: str = "linear", nearest: str = "floor", **given: object
) -> list[float]:
    scales = np.asarray([1.0, 1.0, scale])
    result = onnx_resize(LINE, scales, given.pop("roi", None), coordinates, interpolator, nearest, **given)  # type: ignore[arg-type]
    return [round(float(value), 4) for value in result.ravel()]


def test_two_elements() -> None:
    assert resized("pytorch_half_pixel", 2) == [5.0, 25.0]
    assert scaled("pytorch_half_pixel", 0.5) == [5.0, 25.0]


def test_a_result_of_rounded_size() -> None:
    # 2.8 elements become 2
    assert scaled("half_pixel_symmetric", 0.7) == pytest.approx([7.8571, 22.1429], abs=1e-4)
    assert scaled("half_pixel", 0.7) == pytest.approx([2.1429, 16.4286], abs=1e-4)
    # 4.4 elements become 4
    assert scaled("asymmetric", 1.1) == pytest.approx([0.0, 9.0909, 18.1818, 27.2727], abs=1e-4)


def test_an_axis_whose_scale_is_1_stays() -> None:
    assert scaled("tf_half_pixel_for_nn", 1.0) == [0.0, 10.0, 20.0, 30.0]
    assert resized("tf_half_pixel_for_nn", 4) == [0.0, 10.0, 20.0, 30.0]


@pytest.mark.parametrize(
    ("nearest", "expected"),
    [
        ("floor", [0, 0, 0, 0, 10, 10, 10, 10, 20]),
        ("ceil", [0, 10, 10, 10, 10, 20, 20, 20, 20]),
        ("round_prefer_floor", [0, 0, 0, 10, 10, 10, 10, 20, 20]),
        ("round_prefer_ceil", [0, 0, 10, 10, 10, 10, 20, 20, 20]),
    ],
)
def test_nearest_at_quarters(nearest: str, expected: list[float]) -> None:
    assert scaled("asymmetric", 4.0, "nearest", nearest)[:9] == expected


def test_a_scalar_stands_for_what_is_not_given() -> None:
    sizes = np.asarray([1, 1, 2])
    assert core_resize(LINE, np.asarray(1.0), sizes).tolist() == core_resize(LINE, None, sizes).tolist()
    assert scaled("tf_crop_and_resize", 1.0, roi=np.asarray(0.0)) == [0.0, 10.0, 20.0, 30.0]


def test_regions() -> None:
    region = np.asarray([0.0, 0.0, 0.25, 1.0, 1.0, 0.75])
    assert scaled("tf_crop_and_resize", 0.5, roi=region) == [7.5, 22.5]
    assert scaled("tf_crop_and_resize", 0.25, roi=np.asarray([0.0, 0.0, 0.25, 1.0, 1.0, 0.5])) == [11.25]
    assert scaled("tf_crop_and_resize", 0.5, roi=np.asarray([0.0, 0.0, 0.25, 1.0, 1.0, 1.25])) == [7.5, 0.0]
    assert scaled("tf_crop_and_resize", 1.0) == [0.0, 10.0, 20.0, 30.0]


def test_weights_outside_at_the_end() -> None:
    # at 3.5 the elements 2 and 3 have the weights -0.09375 and 0.59375
    assert scaled("asymmetric", 2.0, "cubic", exclude_outside=True)[7] == pytest.approx((-1.875 + 17.8125) / 0.5)
    assert scaled("asymmetric", 2.0, "cubic")[7] == pytest.approx(-1.875 + 30 * 1.09375, abs=1e-4)


def test_antialiasing_of_cubic_kernels() -> None:
    wide = scaled("half_pixel", 0.5, "cubic", antialias=True)
    low = (10 * 0.87890625 + 20 * 0.26171875 - 30 * 0.140625) / 2
    assert wide == pytest.approx([low, 30.0 - low], abs=1e-4)
    assert scaled("half_pixel", 0.5, "cubic") == pytest.approx([4.0625, 25.9375])


def test_antialiasing_changes_no_larger_result() -> None:
    for interpolator in ("linear", "cubic"):
        assert scaled("half_pixel", 2.0, interpolator, antialias=True) == scaled("half_pixel", 2.0, interpolator)
    assert scaled("half_pixel", 0.5) == [5.0, 25.0]


def test_each_axis_has_its_scale() -> None:
    image = np.asarray([[[[0.0, 8.0, 16.0], [24.0, 32.0, 40.0]]]])
    tall = core_resize(image, np.asarray([1.0, 1.0, 2.0, 1.0]), None, "asymmetric", "linear")
    assert tall[0, 0].tolist() == [[0, 8, 16], [12, 20, 28], [24, 32, 40], [24, 32, 40]]
    wide = core_resize(image, None, np.asarray([1, 1, 1, 6]), "asymmetric", "nearest")
    assert wide[0, 0].tolist() == [[0, 0, 8, 8, 16, 16]]
