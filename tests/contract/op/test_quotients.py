"""Decisions by a quotient, a mean or a logarithm are PyTorch's, although engines multiply by reciprocals.

Each net is compared exactly, over all integers up to a bound; the same nets are one off in float32 products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core import ModelExport, TractNNEF
from tests.nets import OfFunction
from tests.releases import NEWEST, OLDEST, on_each_line

VERSIONS = on_each_line(OLDEST, NEWEST)
DIVISORS = (3, 7, 13, 30, 41, 47, 49, 61, 83, 107, 240, 4095)
FLOATS = torch.arange(-5000, 5000).float()
AXES = {"x": {0: "N"}}
Net = Callable[[Tensor], Any]


def assert_exact(net: Net, version: str, path: Path, example: Tensor, *others: Tensor, axes: Mapping[str, Any]) -> None:
    """Assert that the engine gives just PyTorch's numbers, for the example and the other inputs."""
    export = ModelExport(
        OfFunction(net).eval(),
        example,
        input_names=["x"],
        dynamic_axes=axes,
        extra_inputs=[(other,) for other in others],
    )
    export.to(TractNNEF(version, check_io=False), path / "model.nnef.tar").assert_parity("exact")


def by_numbers(x: Tensor) -> list[Tensor]:
    outputs = []
    for k in DIVISORS:
        outputs += [torch.ceil(x / k), torch.floor(x / k), (x / k).round(), (x / k).long(), x / k == 3, x / k < 1]
    return outputs


def by_tensors(x: Tensor) -> list[Tensor]:
    divisors = torch.tensor(DIVISORS).float()
    quotients = x[:, None] / divisors
    return [quotients.ceil(), (divisors / x[:, None] * 41).floor(), torch.addcdiv(x, x, divisors[:1]).trunc()]


def through_others(x: Tensor) -> tuple[Tensor, ...]:
    """Quotients with other operators between them and the decision."""
    moved = (x / 49).reshape(-1, 1).expand(-1, 2).flatten(0).neg()
    return moved.clamp(-3, 9).floor(), torch.where(x > 0, x / 41, x / 7).ceil(), (x / 7)[1:].amax().ceil()


def rounded_quotients(x: Tensor) -> tuple[Tensor, ...]:
    return torch.div(x, 49, rounding_mode="trunc"), torch.div(x, 41, rounding_mode="floor"), (x / 49).frac()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("net", [by_numbers, by_tensors, through_others, rounded_quotients])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float16, torch.float64])
def test_quotients_of_all_integers(net: Net, version: str, dtype: torch.dtype, tmp_path: Path) -> None:
    if dtype is torch.int64 and net in (through_others, rounded_quotients):
        pytest.skip("roundings of floats only")
    limit = 2048 if dtype is torch.float16 else 5000
    every = torch.arange(-limit, limit)
    assert_exact(
        net, version, tmp_path, torch.tensor([30, 12, -50, 4]).to(dtype), every[every != 0].to(dtype), axes=AXES
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_quotients_up_to_the_last_exact_integer(version: str, tmp_path: Path) -> None:
    every = [torch.arange(start, 2**24, 97).float() for start in (1, 55)]
    assert_exact(lambda x: torch.ceil(x / 7), version, tmp_path, torch.tensor([9.0, 14.0, 3.0]), *every, axes=AXES)


def bins(x: Tensor) -> tuple[Tensor, ...]:
    places, size = torch.arange(x.shape[0]), x.shape[0]
    return (places / size * 10).long(), places / size == 0.5, places.float() / size < 0.3, x[(places * 49 / 49).long()]


def levels(x: Tensor) -> Tensor:
    low, high = x.amin(), x.amax() + 1
    return ((x - low) / (high - low) * 10).long()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("net", [bins, levels])
def test_bins(net: Net, version: str, tmp_path: Path) -> None:
    others = [torch.arange(float(n)) for n in (2, 40, 48, 49, 50, 82, 83, 98, 106, 1000)]
    assert_exact(net, version, tmp_path, torch.arange(30.0), *others, axes=AXES)


def means(x: Tensor) -> tuple[Tensor, ...]:
    ones = torch.ones_like(x)
    return x.mean(0) == 1, ones.cumsum(0).mean(0).floor(), F.adaptive_avg_pool1d(x[None, None], 1) == 1


def deviations(x: Tensor) -> tuple[Tensor, ...]:
    return ((x * 3).var(0) * x.shape[0]).round(), (x * 2).std(0) == 0


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("net", [means, deviations])
def test_means_of_ones(net: Net, version: str, tmp_path: Path) -> None:
    others = [torch.ones(n) for n in (2, 7, 41, 47, 49, 61, 98, 107, 1000)]
    assert_exact(net, version, tmp_path, torch.ones(30), *others, axes=AXES)


def pools(x: Tensor) -> tuple[Tensor, ...]:
    return F.avg_pool1d(x, 41) == 1, F.avg_pool1d(x, 7, 1, 3).floor(), F.adaptive_avg_pool1d(x[..., :82], 2).ceil()


@pytest.mark.parametrize("version", VERSIONS)
def test_means_of_windows(version: str, tmp_path: Path) -> None:
    assert_exact(pools, version, tmp_path, torch.ones(1, 2, 123), (torch.rand(1, 2, 123) < 0.9).float(), axes={})


def logarithms(x: Tensor) -> tuple[Tensor, ...]:
    return x.log2().floor(), x.log2().long(), x.log10().ceil(), x.log2() == 13


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_logarithms_of_powers(version: str, dtype: torch.dtype, tmp_path: Path) -> None:
    powers = torch.cat([2.0 ** torch.arange(-30, 60), 10.0 ** torch.arange(0, 11)]).to(dtype)
    every = torch.arange(1, 20000).to(dtype)
    assert_exact(logarithms, version, tmp_path, torch.tensor([5.0, 3.0, 9.0], dtype=dtype), powers, every, axes=AXES)


def to_tens(x: Tensor) -> Tensor:
    return x.round(decimals=-1)


@pytest.mark.parametrize("version", VERSIONS)
def test_rounding_to_tens(version: str, tmp_path: Path) -> None:
    assert_exact(to_tens, version, tmp_path, torch.tensor([3.0, 8.0]), FLOATS, axes=AXES)


def of_sizes(x: Tensor) -> tuple[Tensor, ...]:
    places, size = torch.arange(x.shape[0]), x.shape[0]
    return (places * (size / 7)).floor(), places < size / 49, (places * (1 / size)).floor()


@pytest.mark.parametrize("version", VERSIONS)
def test_numbers_of_sizes(version: str, tmp_path: Path) -> None:
    others = [torch.arange(float(n)) for n in (1, 7, 21, 41, 49, 98, 107, 1001)]
    assert_exact(of_sizes, version, tmp_path, torch.arange(30.0), *others, axes=AXES)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("net", [lambda x: x % 3, lambda x: torch.fmod(x, -7.3)])
def test_a_remainder_that_float64_lacks_the_digits_for_is_nan(net: Net, version: str, tmp_path: Path) -> None:
    """It would be any number, and even larger than the divisor."""
    export = ModelExport(OfFunction(net).eval(), torch.tensor([5e8, -5e8, 1e30, -3e38]), input_names=["x"])
    result = export.to(TractNNEF(version, check_io=False), tmp_path / "model.nnef.tar")
    (sample, *_) = result.samples
    (output,) = result.target.engine().run(result.archive, [sample.inputs]).outputs[0]
    np.testing.assert_allclose(output[:2], sample.expected[0][:2], atol=1e-6)
    assert np.isnan(output[2:]).all()
