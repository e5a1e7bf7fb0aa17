"""Resampling of one axis, and of one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.dialect.meaning.standard.resampling import (
    area_downsample,
    multilinear_upsample,
    nearest_downsample,
    nearest_upsample,
)

IMAGE = np.asarray([[[[0.0, 8.0], [16.0, 32.0]]]])
LINE = np.asarray([[[2.0, 6.0, 0.0]]])


def test_blocks() -> None:
    images = np.arange(24.0).reshape(2, 2, 2, 3)
    assert area_downsample(images, [2, 3]).tolist() == [[[[2.5]], [[8.5]]], [[[14.5]], [[20.5]]]]
    assert area_downsample(images, [1, 2])[1, 1].tolist() == [[18.5], [21.5]]
    assert nearest_downsample(images, [2, 2])[0].tolist() == [[[0.0, 2.0]], [[6.0, 8.0]]]
    assert nearest_upsample(IMAGE, [1, 2]).tolist() == [[[[0.0, 0.0, 8.0, 8.0], [16.0, 16.0, 32.0, 32.0]]]]


@pytest.mark.parametrize(
    ("method", "border", "expected"),
    [
        ("aligned", "replicate", [2.0, 3.6, 5.2, 4.8, 2.4, 0.0]),
        ("aligned", "constant", [2.0, 3.6, 5.2, 4.8, 2.4, 0.0]),
        ("symmetric", "replicate", [2.0, 3.0, 5.0, 4.5, 1.5, 0.0]),
        ("symmetric", "constant", [1.5, 3.0, 5.0, 4.5, 1.5, 0.0]),
        ("asymmetric", "replicate", [2.0, 4.0, 6.0, 3.0, 0.0, 0.0]),
    ],
)
def test_a_line(method: str, border: str, expected: list[float]) -> None:
    np.testing.assert_allclose(multilinear_upsample(LINE, [2], method, border).ravel(), expected, atol=1e-12)
    upright = multilinear_upsample(LINE[..., None], [2, 1], method, border)
    np.testing.assert_allclose(upright[..., 0].ravel(), expected, atol=1e-12)


def test_two_axes() -> None:
    result = multilinear_upsample(IMAGE, [2, 2], "asymmetric")
    assert result[0, 0].tolist() == [[0, 4, 8, 8], [8, 14, 20, 20], [16, 24, 32, 32], [16, 24, 32, 32]]
    result = multilinear_upsample(IMAGE, [1, 2], "asymmetric", "constant")
    assert result[0, 0].tolist() == [[0, 4, 8, 4], [16, 24, 32, 16]]
    result = multilinear_upsample(IMAGE, [2, 1], "asymmetric", "constant")
    assert result[0, 0].tolist() == [[0, 8], [8, 20], [16, 32], [8, 16]]


def test_one_element_stays() -> None:
    single = np.asarray([[[7.0]]])
    assert multilinear_upsample(single, [1], "aligned").tolist() == [[[7.0]]]
    assert multilinear_upsample(single, [2], "aligned").tolist() == [[[7.0, 7.0]]]
