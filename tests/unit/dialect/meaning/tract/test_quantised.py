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
    result = qmatmul(a, b, np.asarray(4, dtype=np.int32), axes=[0, 1, 0, 1, 0, 1], **GRIDS, output_type="i8")
    assert result.dtype == np.int8
    assert result.tolist() == [[9]]  # (2 * 2 + 4 * 4 + 4) / 4 + 3
    halved = qmatmul(a, b, axes=[0, 1, 0, 1, 0, 1], **{**GRIDS, "c_scale": 2.0}, output_type="i8")
    assert halved.tolist() == [[5]]  # (2 * 2 + 4 * 4) / 8, to even, + 3
    assert qmatmul(a, b, axes=[0, 1, 0, 1, 0, 1], output_type="i32").tolist() == [[18]]


def test_einsum_q_with_a_scale_for_each_row() -> None:
    a, b = np.asarray([[3, 5], [1, 1]], dtype=np.int8), np.asarray([[1], [3]], dtype=np.int8)
    result = einsum_q(
        [a, b],
        "mk,kn,,,m,,,,->mn",
        "i32",
        "i8",
        np.asarray(4, dtype=np.int32),
        **{**GRIDS, "a_scale": np.asarray([0.5, 8.0])},
    )
    assert result.tolist() == [[9], [19]]  # the second row: (0 + 4) * 4 + 3
    with pytest.raises(SpecError, match="nine operands are needed, not 2"):
        einsum_q([a, b], "mk,kn->mn", "i32", "i8", **GRIDS)


def test_einsum_q_with_a_letter_for_each_axis_of_its_grids() -> None:
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-9, 9, shape).astype(np.int8) for shape in ((2, 3), (3, 4)))
    bias, a0, b0, c0 = (rng.integers(-5, 5, shape) for shape in ((4, 2), 3, 3, 2))
    a_scale, b_scale, c_scale = (rng.uniform(0.2, 2.0, extent) for extent in (2, 4, 4))
    grids = {"a0": a0, "a_scale": a_scale, "b0": b0, "b_scale": b_scale, "c0": c0, "c_scale": c_scale}
    result = einsum_q([a, b], "mk,kn,nm,k,m,k,n,m,n->mn", "i32", "i32", bias, **grids)
    plain = einsum_q([a, b], "mk,kn,,k,m,k,n,m,n->mn", "i32", "i32", **grids)
    for m, n in np.ndindex(2, 4):
        total = sum((int(a[m, k]) - int(a0[k])) * (int(b[k, n]) - int(b0[k])) for k in range(3))
        scale = a_scale[m] * b_scale[n] / c_scale[n]
        assert result[m, n] == round((total + bias[n, m]) * scale) + c0[m]
        assert plain[m, n] == round(total * scale) + c0[m]


def test_einsum_q_with_an_axis_that_only_a_zero_point_has() -> None:
    """tract writes a convolution by a window of one element so."""
    a, b = np.asarray([3, 5], dtype=np.int8), np.asarray([[2]], dtype=np.int8)
    grids = {**GRIDS, "a0": 0, "b0": np.asarray([1, -1]), "b_scale": np.asarray([2.0, 4.0]), "c0": 0}
    result = einsum_q([a, b], "n,ci,,,,o,o,,->on", "i32", "i32", **grids)
    assert result.tolist() == [[3, 5], [18, 30]]  # a * (2 - 1) * 0.5 * 2, a * (2 + 1) * 0.5 * 4


def test_qconv_counts_a_as_the_filter_and_pads_with_the_zero_point_of_the_input() -> None:
    x, weights = np.asarray([[[1, 3, 5]]], dtype=np.int8), np.asarray([[[2, 3]]], dtype=np.int8)
    shared = {"group": 1, "dilation": [1], "stride": [1], "border": "constant", **GRIDS}
    result = qconv(x, weights, padding=[(1, 0)], **shared)
    # the input without -1 is 2, 4, 6, the filter without 1 is 1, 2
    assert result.tolist() == [[[4, 5, 7]]]  # 4, 10, 16 over 4, ties to even, plus 3
    assert qconv(x, weights, padding=[], **shared).tolist() == [[[5, 7, 5]]]
    assert qconv(x, weights, np.asarray([8], dtype=np.int32), padding=[(0, 0)], **shared).tolist() == [[[7, 9]]]
    strided = qconv(x, weights, padding=[(1, 0)], **{**shared, "stride": [2], "output_dt": "i32"})
    assert strided.dtype == np.int32
    assert strided.tolist() == [[[4, 7]]]


def test_qconv_by_groups() -> None:
    x = np.asarray([[[1], [2], [3], [4]]], dtype=np.int8)
    weights = np.asarray([[[1], [1]], [[1], [-1]]], dtype=np.int8)
    plain = {"a0": 0, "a_scale": 1.0, "b0": 0, "b_scale": 1.0, "c0": 0, "c_scale": 1.0}
    result = qconv(x, weights, group=2, dilation=[], stride=[], padding=[(0, 0)], border="constant", **plain)
    assert result.tolist() == [[[3], [-1]]]
    with pytest.raises(SpecError, match="the border is 'reflect'"):
        qconv(x, weights, group=2, dilation=[], stride=[], padding=[], border="reflect", **plain)


def conv_by_loops(x: np.ndarray, w: np.ndarray, group: int, stride: int, dilation: int) -> np.ndarray:
    """Return the sums of a convolution of one spatial axis, without padding."""
    positions = (x.shape[2] - (w.shape[2] - 1) * dilation - 1) // stride + 1
    sums = np.zeros((x.shape[0], w.shape[0], positions), dtype=int)
    for batch, out, at, channel, tap in np.ndindex(*sums.shape, *w.shape[1:]):
        first = out // (w.shape[0] // group) * w.shape[1]
        sums[batch, out, at] += int(x[batch, first + channel, at * stride + tap * dilation]) * int(w[out, channel, tap])
    return sums


@pytest.mark.parametrize(
    ("channels", "filters", "group"), [(4, (6, 2, 3), 2), (3, (3, 1, 2), 0), (5, (2, 5, 1), 1), (2, (4, 1, 2), 2)]
)
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 2)])
def test_qconv_without_grids_is_a_convolution(
    channels: int, filters: tuple[int, int, int], group: int, stride: int, dilation: int
) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(-9, 9, (2, channels, 8)).astype(np.int8)
    w = rng.integers(-9, 9, filters).astype(np.int8)
    shared = {"group": group, "padding": [(0, 0)], "border": "constant", "output_dt": "i32"}
    sums = conv_by_loops(x, w, group or filters[0], stride, dilation)
    assert qconv(x, w, stride=[stride], dilation=[dilation], **shared).tolist() == sums.tolist()
    if stride == dilation == 1:
        assert qconv(x, w, stride=[], dilation=[], **shared).tolist() == sums.tolist()
    # grids, zero points and biases of each filter
    zeros, biases = np.arange(filters[0]) - 1, 5 * np.arange(filters[0])
    scales = 2.0 ** np.arange(filters[0])
    sums = conv_by_loops(x, w - zeros[:, None, None], group or filters[0], stride, dilation) + biases[:, None]
    arguments = {"a0": zeros, "a_scale": scales, "b_scale": 2 * scales, "c_scale": scales, "c0": 3}
    result = qconv(x, w, biases, stride=[stride], dilation=[dilation], **arguments, **shared)
    assert result.tolist() == (sums * 2 * scales[:, None] + 3).tolist()


@pytest.mark.parametrize(
    ("extent", "size", "stride", "dilation", "padding"),
    [
        (7, 3, 2, 1, (1, 1)),
        (5, 3, 1, 1, (1, 1)),
        (5, 4, 2, 1, (1, 2)),
        (4, 2, 1, 1, (0, 1)),
        (8, 1, 4, 1, (0, 0)),
        (6, 2, 1, 3, (1, 2)),
    ],
)
def test_qconv_keeps_the_extent_over_the_stride(
    extent: int, size: int, stride: int, dilation: int, padding: tuple[int, int]
) -> None:
    x, w = np.arange(1, extent + 1, dtype=np.int8).reshape(1, 1, -1), np.arange(1, size + 1).reshape(1, 1, -1)
    shared = {"group": 1, "stride": [stride], "dilation": [dilation], "border": "constant", "output_dt": "i32"}
    result = qconv(x, w.astype(np.int8), padding=[], **shared)
    sums = conv_by_loops(np.pad(x, [(0, 0), (0, 0), padding]), w, 1, stride, dilation)
    assert result.shape[2] == -(-extent // stride)
    assert result.tolist() == sums.tolist()


def test_qconv_over_two_axes() -> None:
    x = np.arange(12, dtype=np.int8).reshape(1, 1, 3, 4)
    w = np.asarray([[[[1, 10]]], [[[-1, 0]]]], dtype=np.int8)
    shared = {"group": 1, "stride": [2, 1], "dilation": [1, 2], "border": "constant", "output_dt": "i32"}
    result = qconv(x, w, np.asarray([0, 7]), padding=[(0, 0), (0, 1)], a0=np.asarray([0, -1]), b0=1, **shared)
    # without 1, the first and the last row are -1 0 1 2 and 7 8 9 10, with a 0 after
    assert result[0, 0].tolist() == [[9, 20, 1], [97, 108, 9]]
    assert result[0, 1].tolist() == [[8, 9, 7], [16, 17, 7]]
