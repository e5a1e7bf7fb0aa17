"""Convolutions of several channels and outputs, with the defaults of their attributes."""

from __future__ import annotations

import numpy as np

from t2n_core.dialect.meaning.standard.convolution import (
    conv,
    deconv,
    deconv_of_standard,
    separable_conv,
    separable_deconv,
    separable_deconv_of_standard,
)

X = np.asarray([[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]])


def test_one_output_of_two_channels() -> None:
    weights = np.asarray([[[2.0], [1.0]]])
    assert conv(X, weights).tolist() == [[[12.0, 24.0, 36.0]]]
    assert deconv(X, weights).tolist() == [[[12.0, 24.0, 36.0]]]


def test_two_outputs_with_a_bias_for_each() -> None:
    weights = np.asarray([[[2.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, -1.0]]])
    padding = [(0, 0)]
    result = conv(X, weights, np.asarray([[0.5, 7.0]]), padding=padding)
    assert result.tolist() == [[[12.5, 24.5], [-11.0, -20.0]]]
    assert conv(X, weights, 0.5, padding=padding).tolist() == [[[12.5, 24.5], [-17.5, -26.5]]]
    spread = deconv(X, weights, np.asarray([[0.5, 7.0]]), padding=padding)
    assert spread.tolist() == [[[12.5, 24.5, 36.5, 0.5], [7.0, -2.0, -11.0, -20.0]]]


def test_padding_is_taken_from_the_result_of_a_deconvolution() -> None:
    line, weights = X[:, :1], np.asarray([[[1.0, 10.0, 100.0]]])
    assert deconv(line, weights, padding=[(0, 0)]).ravel().tolist() == [1.0, 12.0, 123.0, 230.0, 300.0]
    assert deconv(line, weights, padding=[(1, 0)]).ravel().tolist() == [12.0, 123.0, 230.0, 300.0]
    assert deconv(line, weights, padding=[(2, 1)], stride=[2]).ravel().tolist() == [102.0, 20.0, 203.0, 30.0]


def test_groups() -> None:
    doubled = np.concatenate([X, -X], axis=1)
    weights = np.asarray([[[1.0], [1.0]], [[1.0], [0.0]], [[0.0], [1.0]], [[2.0], [0.0]]])
    expected = [[11, 22, 33], [1, 2, 3], [-10, -20, -30], [-2, -4, -6]]
    assert conv(doubled, weights, groups=2)[0].tolist() == expected
    assert deconv(doubled, weights, groups=2)[0].tolist() == expected
    single = np.asarray([[[3.0]], [[0.5]]])
    assert conv(X, single, groups=0)[0].tolist() == [[3, 6, 9], [5, 10, 15]]
    assert deconv(X, single, groups=0)[0].tolist() == [[3, 6, 9], [5, 10, 15]]


def test_each_image_of_a_batch_is_convolved_along_two_axes() -> None:
    images = np.arange(36.0).reshape(4, 1, 3, 3)
    weights = np.asarray([[[[1.0, 100.0]]]])
    result = conv(images, weights, padding=[(0, 0), (0, 0)])
    assert result.shape == (4, 1, 3, 2)
    assert result[3, 0].tolist() == [[2827.0, 2928.0], [3130.0, 3231.0], [3433.0, 3534.0]]
    spread = deconv(images, weights, padding=[(0, 0), (0, 0)], stride=[1, 2])
    assert spread.shape == (4, 1, 3, 6)
    assert spread[3, 0, 1].tolist() == [30.0, 3000.0, 31.0, 3100.0, 32.0, 3200.0]


def test_separable_convolutions_mix_all_channels_without_a_bias() -> None:
    planes = np.asarray([[[1.0, 2.0]], [[0.0, 1.0]]])
    points = np.asarray([[[1.0], [1.0]], [[1.0], [0.0]]])
    # the planes are 1 + 4, 2 + 6 and 20, 30
    result = separable_conv(X, planes, points, padding=[(0, 0)])
    assert result.tolist() == [[[25.0, 38.0], [5.0, 8.0]]]
    grouped = separable_conv(X, planes, np.asarray([[[1.0]], [[3.0]]]), 0.5, padding=[(0, 0)], groups=2)
    assert grouped.tolist() == [[[5.5, 8.5], [60.5, 90.5]]]


def test_separable_deconvolutions_mix_all_channels_without_a_bias() -> None:
    planes = np.asarray([[[1.0, 2.0]], [[0.0, 1.0]]])
    points = np.asarray([[[1.0], [1.0]], [[1.0], [0.0]]])
    # the mixed channels are 11, 22, 33 and 1, 2, 3
    result = separable_deconv(X, planes, points, padding=[(0, 0)])
    assert result.tolist() == [[[11.0, 44.0, 77.0, 66.0], [0.0, 1.0, 2.0, 3.0]]]
    grouped = separable_deconv(X, planes, np.asarray([[[1.0]], [[3.0]]]), 0.5, padding=[(0, 0)], groups=2)
    assert grouped.tolist() == [[[1.5, 4.5, 7.5, 6.5], [0.5, 30.5, 60.5, 90.5]]]


def test_filters_of_the_standard_have_the_channels_of_the_input_first() -> None:
    weights = np.arange(1.0, 5.0).reshape(2, 2, 1)
    assert np.array_equal(deconv_of_standard(X, weights), deconv(X, weights.swapaxes(0, 1)))
    wide = np.arange(1.0, 7.0).reshape(2, 3, 1)
    assert deconv_of_standard(X, wide)[0, :, 0].tolist() == [41.0, 52.0, 63.0]


def test_windows_of_the_standard_stay_in_order() -> None:
    doubled = np.concatenate([X, 2 * X, -X], axis=1)
    weights = np.arange(1.0, 25.0).reshape(6, 2, 2)  # of 2 groups: 3 channels to 2 outputs, of a window of 2
    first, second = weights[:3].swapaxes(0, 1), weights[3:].swapaxes(0, 1)
    expected = deconv(doubled, np.concatenate([first, second]), groups=2)
    assert np.array_equal(deconv_of_standard(doubled, weights, groups=2), expected)


def test_groups_of_the_standard() -> None:
    doubled = np.concatenate([X, -X], axis=1)
    weights = np.asarray([[[1.0], [1.0]], [[1.0], [0.0]], [[0.0], [2.0]], [[1.0], [0.0]]])
    assert deconv_of_standard(doubled, weights, groups=2)[0].tolist() == [
        [11, 22, 33],
        [1, 2, 3],
        [-10, -20, -30],
        [-2, -4, -6],
    ]
    single = np.asarray([[[3.0]], [[0.5]]])
    assert deconv_of_standard(X, single, groups=0)[0].tolist() == [[3, 6, 9], [5, 10, 15]]
    planes = np.asarray([[[1.0, 2.0]], [[0.0, 1.0]]])
    points = np.arange(1.0, 5.0).reshape(2, 2, 1)
    result = separable_deconv_of_standard(X, planes, points, padding=[(0, 0)])
    assert np.array_equal(result, separable_deconv(X, planes, points.swapaxes(0, 1), padding=[(0, 0)]))
