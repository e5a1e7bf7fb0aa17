"""Products and convolutions of 8-bit integers."""

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.quantised import einsum_q, qconv, qmatmul, requantise
from t2n_core.errors import SpecError

GRIDS = {"a0": 1, "a_scale": 0.5, "b0": -1, "b_scale": 0.5, "c0": 3, "c_scale": 1.0}


def test_requantisation_rounds_halves_to_even_and_clips() -> None:
    sums, scale = np.asarray([1, 3, 5, -1, 1000, -1000]), np.asarray(0.5)
    assert requantise(sums, scale, np.asarray(0), np.dtype(np.int8)).tolist() == [0, 2, 2, 0, 127, -128]
    assert requantise(sums, scale, np.asarray(7), np.dtype(np.uint8)).tolist() == [7, 9, 9, 7, 255, 0]
    assert requantise(sums, scale, np.asarray(0), np.dtype(np.int32)).tolist() == [0, 2, 2, 0, 500, -500]


def test_qmatmul() -> None:
    a, b = np.asarray([[3, 5]], dtype=np.int8), np.asarray([[1], [3]], dtype=np.int8)
    found = qmatmul(a, b, np.asarray(4, dtype=np.int32), axes=[0, 1, 0, 1, 0, 1], **GRIDS, output_type="i8")
    assert found.dtype == np.int8
    assert found.tolist() == [[9]]  # (2 * 2 + 4 * 4 + 4) / 4 + 3


def test_einsum_q_with_a_scale_for_each_row() -> None:
    a, b = np.asarray([[3, 5], [1, 1]], dtype=np.int8), np.asarray([[1], [3]], dtype=np.int8)
    found = einsum_q(
        [a, b],
        "mk,kn,,,m,,,,->mn",
        "i32",
        "i8",
        np.asarray(4, dtype=np.int32),
        **{**GRIDS, "a_scale": np.asarray([0.5, 8.0])},
    )
    assert found.tolist() == [[9], [19]]  # the second row: (0 + 4) * 4 + 3
    with pytest.raises(SpecError, match="nine operands are needed, not 2"):
        einsum_q([a, b], "mk,kn->mn", "i32", "i8", **GRIDS)


def test_qconv_counts_a_as_the_filter_and_pads_with_the_zero_point_of_the_input() -> None:
    x, weights = np.asarray([[[1, 3, 5]]], dtype=np.int8), np.asarray([[[2, 3]]], dtype=np.int8)
    shared = {"group": 1, "dilation": [1], "stride": [1], "border": "constant", **GRIDS}
    found = qconv(x, weights, padding=[(1, 0)], **shared)
    # the input without -1 is 2, 4, 6, the filter without 1 is 1, 2
    assert found.tolist() == [[[4, 5, 7]]]  # 4, 10, 16 over 4, halves to even, plus 3
    assert qconv(x, weights, padding=[], **shared).tolist() == [[[5, 7, 5]]]
    assert qconv(x, weights, np.asarray([8], dtype=np.int32), padding=[(0, 0)], **shared).tolist() == [[[7, 9]]]
    strided = qconv(x, weights, padding=[(1, 0)], **{**shared, "stride": [2], "output_dt": "i32"})
    assert strided.dtype == np.int32
    assert strided.tolist() == [[[4, 7]]]


def test_qconv_by_groups() -> None:
    x = np.asarray([[[1], [2], [3], [4]]], dtype=np.int8)
    weights = np.asarray([[[1], [1]], [[1], [-1]]], dtype=np.int8)
    plain = {"a0": 0, "a_scale": 1.0, "b0": 0, "b_scale": 1.0, "c0": 0, "c_scale": 1.0}
    found = qconv(x, weights, group=2, dilation=[], stride=[], padding=[(0, 0)], border="constant", **plain)
    assert found.tolist() == [[[3], [-1]]]
    with pytest.raises(SpecError, match="the border is 'reflect'"):
        qconv(x, weights, group=2, dilation=[], stride=[], padding=[], border="reflect", **plain)
