"""The replaced operators of the interpreter on small numbers, worked out by hand from the text of NNEF 1.0.5."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from t2n_core.engine.khronos.ops import OPERATORS, slice_indices
from t2n_core.engine.khronos.window import Window, fold

INF = math.inf


def t(*values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float32)


def row(*values: Any) -> Tensor:
    """[1, 1, n]: batch, channel, one spatial axis."""
    return t(*values)[None, None]


def check(got: Any, want: Any) -> None:
    want = want if isinstance(want, Tensor) else torch.tensor(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    torch.testing.assert_close(got.to(torch.float64), want.to(torch.float64), rtol=1e-6, atol=1e-6)


def run(operator: str, *args: Any, **attributes: Any) -> Any:
    return OPERATORS[operator](*args, **attributes)


# -------------------------------------------------------------------------------------------------------------- borders
@pytest.mark.parametrize(
    ("border", "want"),
    [
        ("constant", [9, 9, 9, 1, 2, 3, 9, 9]),
        ("replicate", [1, 1, 1, 1, 2, 3, 3, 3]),
        ("reflect", [2, 3, 2, 1, 2, 3, 2, 1]),
        ("reflect-even", [3, 2, 1, 1, 2, 3, 3, 2]),
    ],
)
def test_pad(border: str, want: list[float]) -> None:
    check(run("pad", t(1, 2, 3), [(3, 2)], border, 9.0), t(*want))


def test_pad_on_every_axis_and_cropping() -> None:
    check(run("pad", t([1, 2], [3, 4]), [(1, 0), (0, 1)]), t([0, 0, 0], [1, 2, 0], [3, 4, 0]))
    check(run("pad", t(1, 2, 3, 4), [(-1, -2)]), t(2))
    check(run("pad", t([1, 2], [3, 4]), [(1, 0), (0, 1)], "replicate"), t([1, 2, 2], [1, 2, 2], [3, 4, 4]))


def test_fold_of_one_element_and_unknown_border() -> None:
    positions = torch.arange(-3, 4)
    for border in ("replicate", "reflect", "reflect-even"):
        assert fold(positions, 1, border).tolist() == [0] * 7
    with pytest.raises(ValueError, match="mirror"):
        fold(positions, 3, "mirror")


# --------------------------------------------------------------------------------------------------------------- slices
@pytest.mark.parametrize(
    ("first", "last", "step", "want"),
    [
        (1, 3, 1, [1, 2]),
        (1, 0, 1, [1, 2, 3, 4]),  # to the end, as long as the stride is 1
        (-3, -1, 1, [2, 3]),
        (1, 99, 1, [1, 2, 3, 4]),  # beyond the extent counts as the extent
        (0, 5, 2, [0, 2, 4]),
        (-1, -6, -1, [4, 3, 2, 1, 0]),  # below zero after adding the extent counts as -1
        (4, 0, -2, [4, 2]),
        (3, 1, 1, []),
    ],
)
def test_slice(first: int, last: int, step: int, want: list[int]) -> None:
    assert list(slice_indices(first, last, step, 5)) == want
    got = run("slice", t(0, 1, 2, 3, 4), axes=[0], begin=[first], end=[last], stride=[step])
    check(got, t(*want))


def test_slice_of_several_axes() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    check(run("slice", x, axes=[1, 0], begin=[1, 0], end=[3, 2]), t([1, 2], [5, 6]))


# -------------------------------------------------------------------------------------------------------------- windows
def test_automatic_padding() -> None:
    """ceil(extent / stride) positions; the odd element goes behind."""
    assert Window([5], [2]).padding == [(0, 1)]
    assert Window([5], [3], stride=[2]).padding == [(1, 1)]
    assert Window([6], [3], stride=[2]).padding == [(0, 1)]
    assert Window([4], [2], stride=[2]).padding == [(0, 0)]
    assert Window([5], [2], dilation=[3]).padding == [(1, 2)]


def test_box() -> None:
    x = row(1, 2, 3, 4)
    window = {"size": [1, 1, 3], "padding": [(0, 0), (0, 0), (1, 1)]}
    check(run("box", x, **window), row(3, 6, 9, 7))
    check(run("box", x, **window, normalize=True), row(1, 2, 3, 7 / 3))
    check(run("box", x, **window, border="ignore", normalize=True), row(1.5, 2, 3, 3.5))
    check(run("box", x, **window, border="replicate"), row(4, 6, 9, 11))
    check(run("box", x, **window, border="reflect"), row(5, 6, 9, 10))
    check(run("box", x, **window, stride=[1, 1, 2]), row(3, 9))
    check(run("box", x, size=[1, 1, 2], padding=[(0, 0)] * 3, dilation=[1, 1, 2]), row(4, 6))


def test_box_over_channels() -> None:
    x = torch.tensor([[[1.0], [2.0], [4.0]]])
    check(run("box", x, size=[1, 2, 1], padding=[(0, 0)] * 3), torch.tensor([[[3.0], [6.0]]]))


def test_average_and_rms_pool() -> None:
    x = row(3, -4, 12)
    window = {"size": [1, 1, 2], "padding": [(0, 0), (0, 0), (1, 0)]}
    check(run("avg_pool", x, **window), row(1.5, -0.5, 4))
    check(run("avg_pool", x, **window, border="ignore"), row(3, -0.5, 4))
    check(run("rms_pool", x, **window), row(math.sqrt(4.5), math.sqrt(12.5), math.sqrt(80)))


def test_max_pool_and_its_border() -> None:
    x = row(-3, -1, -2)
    window = {"size": [1, 1, 2], "padding": [(0, 0), (0, 0), (1, 1)]}
    check(run("max_pool", x, **window), row(0, -1, -1, 0))
    check(run("max_pool", x, **window, border="ignore"), row(-3, -1, -1, -2))
    check(run("max_pool", x, **window, border="replicate"), row(-3, -1, -1, -2))


def test_index_inside_the_window() -> None:
    """Row by row within the window of 2 x 3, whatever its place."""
    x = torch.tensor([[[[1.0, 9.0, 2.0, 3.0], [4.0, 5.0, 6.0, 8.0]]]])
    window = {"size": [1, 1, 2, 3], "padding": [(0, 0)] * 4}
    check(run("argmax_pool", x, **window), [[[[1, 0]]]])
    values, index = run("max_pool_with_index", x, **window)
    check(values, [[[[9.0, 9.0]]]])
    check(index, [[[[1, 0]]]])
    check(run("argmax_pool", x[..., 2:], size=[1, 1, 2, 2], padding=[(0, 0)] * 4), [[[[3]]]])


def test_sample_and_desample() -> None:
    x, index = row(1, 2, 3, 4), torch.tensor([[[1, 0]]])
    window = {"size": [1, 1, 2], "padding": [(0, 0)] * 3, "stride": [1, 1, 2]}
    check(run("sample", x, index, **window), row(2, 3))
    check(run("desample", row(5, 7), index, **window), row(0, 5, 7, 0))
    check(run("desample", row(5, 7), index, **window, output_shape=[1, 1, 5]), row(0, 5, 7, 0, 0))
    overlapping = {"size": [1, 1, 2], "padding": [(0, 0)] * 3, "stride": [1, 1, 1]}
    check(run("desample", row(5, 7), index, **overlapping), row(0, 12, 0))


# ----------------------------------------------------------------------------------------------------------- resampling
def test_downsample() -> None:
    x = torch.arange(8.0).reshape(1, 1, 2, 4)
    check(run("nearest_downsample", x, factor=[2, 2]), [[[[0.0, 2.0]]]])
    check(run("area_downsample", x, factor=[2, 2]), [[[[2.5, 4.5]]]])


@pytest.mark.parametrize(
    ("method", "border", "want"),
    [
        ("symmetric", "replicate", [0, 1, 3, 4]),
        ("symmetric", "constant", [0, 1, 3, 3]),
        ("asymmetric", "replicate", [0, 2, 4, 4]),
        ("asymmetric", "constant", [0, 2, 4, 2]),
        ("aligned", "replicate", [0, 4 / 3, 8 / 3, 4]),
    ],
)
def test_linear_upsample(method: str, border: str, want: list[float]) -> None:
    check(run("multilinear_upsample", row(0, 4), factor=[2], method=method, border=border), row(*want))


def test_linear_upsample_in_three_dimensions() -> None:
    x = torch.arange(8.0).reshape(1, 1, 2, 2, 2)
    got = run("multilinear_upsample", x, factor=[2, 2, 2], method="aligned")
    line = torch.tensor([0.0, 1 / 3, 2 / 3, 1.0])
    check(got, (4 * line[:, None, None] + 2 * line[:, None] + line)[None, None])
    with pytest.raises(ValueError, match="cubic"):
        run("multilinear_upsample", x, factor=[2, 2, 2], method="cubic")


# ----------------------------------------------------------------------------------------------- activations and norms
def test_prelu_counts_axes_from_the_front() -> None:
    x = torch.tensor([[[-1.0, 2.0], [-3.0, -4.0]]])
    check(run("prelu", x, t([0.5, 0.1])), torch.tensor([[[-0.5, 2.0], [-0.3, -0.4]]]))
    check(run("prelu", x, torch.tensor(0.5)), torch.tensor([[[-0.5, 2.0], [-1.5, -2.0]]]))


def test_selu_and_softplus() -> None:
    check(run("selu", t(-INF, 0.0, 2.0)), t(-1.67326319 * 1.05070102, 0.0, 2 * 1.05070102))
    check(run("selu", t(-INF, 2.0), alpha=2.0, _lambda_=0.5), t(-1.0, 1.0))
    check(run("softplus", t(-200.0, 0.0, 200.0)), t(0.0, math.log(2), 200.0))


def test_softmax_over_several_axes() -> None:
    x = torch.tensor([[[0.0, math.log(2)], [math.log(3), math.log(4)]]])
    check(run("softmax", x, axes=[1, 2]), torch.tensor([[[0.1, 0.2], [0.3, 0.4]]]))
    check(run("softmax", x), torch.tensor([[[0.25, 1 / 3], [0.75, 2 / 3]]]))
    check(run("softmax", t([1000.0, 1000.0])), t([0.5, 0.5]))


@pytest.mark.parametrize("shape", [(1, 2), (1, 2, 1)])
def test_batch_normalization(shape: tuple[int, ...]) -> None:
    x = torch.tensor([[[1.0, 3.0], [5.0, 9.0]]])
    mean, variance, offset, scale = (t(*v).reshape(shape) for v in ((1, 5), (3, 15), (10, 20), (2, 3)))
    want = torch.tensor([[[10.0, 12.0], [20.0, 23.0]]])
    check(run("batch_normalization", x, mean, variance, offset, scale, epsilon=1.0), want)
    literal = run("batch_normalization", x, mean, variance, torch.tensor(0.0), torch.tensor(1.0), epsilon=1.0)
    check(literal, torch.tensor([[[0.0, 1.0], [0.0, 1.0]]]))


def test_local_normalizations() -> None:
    """The window is centred by itself, and zeros outside count."""
    x, size = row(3, -4, 12), [1, 1, 3]
    check(run("local_mean_normalization", x, size), row(3 + 1 / 3, -4 - 11 / 3, 12 - 8 / 3))
    deviation = [math.sqrt(25 / 3), math.sqrt(169 / 3), math.sqrt(160 / 3)]
    want = [v / (d + 0.5) for v, d in zip((3, -4, 12), deviation, strict=True)]
    check(run("local_variance_normalization", x, size, bias=0.5), row(*want))
    floored = [v / max(d, 7.0) for v, d in zip((3, -4, 12), deviation, strict=True)]
    check(run("local_variance_normalization", x, size, epsilon=7.0), row(*floored))
    response = [v * (d * d * 2.0 + 1.0) ** -0.75 for v, d in zip((3, -4, 12), deviation, strict=True)]
    check(run("local_response_normalization", x, size, alpha=2.0, beta=0.75, bias=1.0), row(*response))
    centred = run("local_mean_normalization", x, size)
    check(
        run("local_contrast_normalization", x, size, bias=0.5), run("local_variance_normalization", centred, size, 0.5)
    )


def test_local_response_over_channels() -> None:
    x = torch.tensor([[[1.0], [2.0], [3.0]]])
    want = [1 / math.sqrt(1 + 5 / 3), 2 / math.sqrt(1 + 14 / 3), 3 / math.sqrt(1 + 13 / 3)]
    got = run("local_response_normalization", x, [1, 3, 1])
    check(got, torch.tensor(want)[None, :, None])


# ------------------------------------------------------------------------------------------------------------- integers
def test_round_is_floor_of_a_half_more() -> None:
    check(run("round", t(-2.5, -1.5, -0.5, 0.5, 1.5, 2.4)), t(-2, -1, 0, 1, 2, 2))


def test_cast() -> None:
    x = t(-1.7, 0.0, 0.3, 2.9)
    integer = run("cast", x, dtype=int)
    assert integer.tolist() == [-1, 0, 0, 2]
    assert integer.dtype == torch.int64
    logical = run("cast", x, dtype=bool)
    assert logical.tolist() == [True, False, True, True]
    assert run("cast", torch.tensor([3, 0]), dtype=bool).tolist() == [True, False]
    scalar = run("cast", logical, dtype=float)
    assert scalar.dtype == torch.float32
    assert scalar.tolist() == [1.0, 0.0, 1.0, 1.0]


def test_arg_reduce_over_several_axes() -> None:
    x = torch.tensor([[[1.0, 9.0], [3.0, 4.0]], [[0.0, -1.0], [-5.0, 7.0]]])
    check(run("argmax_reduce", x, axes=[2, 1]), [[[1]], [[3]]])
    check(run("argmin_reduce", x, axes=[1, 2]), [[[0]], [[2]]])
    check(run("argmax_reduce", x, axes=[0]), [[[0, 0], [0, 1]]])


# --------------------------------------------------------------------------------------------------------- quantisation
def test_min_max_quantize() -> None:
    """Four levels from -1 to 2: -1, 0, 1, 2; halves go up."""
    x = t(-5.0, -0.6, -0.5, 0.49, 1.5, 9.0)
    want = t(-1.0, -1.0, 0.0, 0.0, 2.0, 2.0)
    low, high = torch.tensor(-1.0), torch.tensor(2.0)
    check(run("min_max_linear_quantize", x, low, high, bits=2, signed=False, symmetric=False), want)
    check(run("linear_quantize", x, low, high, bits=2), want)
    symmetric = run("min_max_linear_quantize", t(-0.4, 0.6), -high / 2, high / 2, bits=2, signed=True, symmetric=True)
    check(symmetric, t(0.0, 1.0))  # three levels: -1, 0, 1


def test_zero_point_quantize() -> None:
    x = t(-9.0, -1.0, 0.25, 9.0)
    zero, scale = torch.tensor(1), torch.tensor(0.5)
    got = run("zero_point_linear_quantize", x, zero, scale, bits=3, signed=True, symmetric=False)
    check(got, t(-2.5, -1.0, 0.5, 1.0))  # integers -4 … 3
    got = run("zero_point_linear_quantize", x, zero, scale, bits=3, signed=True, symmetric=True)
    check(got, t(-2.0, -1.0, 0.5, 1.0))  # integers -3 … 3
    got = run("zero_point_linear_quantize", x, zero, scale, bits=3, signed=False, symmetric=False)
    check(got, t(-0.5, -0.5, 0.5, 3.0))  # integers 0 … 7
    channels = run("zero_point_linear_quantize", t([0.6, 0.6]), torch.tensor(0), t([0.5, 0.25]), 8, True, True)
    check(channels, t([0.5, 0.5]))


def test_logarithmic_quantize() -> None:
    """Powers of two from 2^(3 - 3) to 2^3."""
    x = t(-5.0, 0.1, 1.3, 3.0, 100.0)
    check(run("logarithmic_quantize", x, torch.tensor(8.0), bits=2), t(-4.0, 1.0, 1.0, 4.0, 8.0))
