"""Python's functions on dynamic sizes, and on elements of constants, give the values of PyTorch in real engines."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.engine.tract.engine import TractEngine
from tests.nets import net_of
from tests.releases import NEWEST

VERSIONS = ("0.19.15", "0.21.19", NEWEST)
LENGTHS = (7, 1, 2, 3, 5, 8, 16, 29)


@functools.lru_cache(None)
def positions(count: Any) -> Tensor:
    return torch.arange(count) * 0.5


def net_for(function: Callable[..., Tensor]) -> nn.Module:
    return net_of(
        lambda self, x: function(self, x),
        flag=torch.tensor(False),
        mask=torch.tensor([True, False, True, True]),
        repeats=torch.tensor([1, 0, 3, 2]),
        scale=torch.tensor(-2.5),
    )


def half_rounded_up(net: Any, x: Tensor) -> Tensor:
    return x[:, : math.ceil(x.shape[1] / 2)]


def last_of_few(net: Any, x: Tensor) -> Tensor:
    return x[:, :3][:, -1]


def third_and_one(net: Any, x: Tensor) -> Tensor:
    return x[:, : int(x.shape[1] / 3) + 1]


def to_even(net: Any, x: Tensor) -> Tensor:
    return x * round(x.shape[1] / 2) + x[:, -1:] * abs(x.shape[1] - 5)


def python_numbers(net: Any, x: Tensor) -> Tensor:
    return x.sum(1) / int(x.shape[1]) - float(x.shape[1]) + len(x.mT[0, 0])


def numpy_root(net: Any, x: Tensor) -> Tensor:
    return x / np.sqrt(x.shape[1])


def cached_table(net: Any, x: Tensor) -> Tensor:
    return x + positions(x.shape[1])[:, None]


def scale_of_attention(net: Any, x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x, scale=1 / x.shape[1])


def whole_mean(net: Any, x: Tensor) -> Tensor:
    return F.avg_pool1d(x.mT, x.shape[1])


def whole_maximum(net: Any, x: Tensor) -> Tensor:
    return F.max_pool1d(x.mT, x.size(1)).squeeze(2) + F.max_pool2d(x[:, None], x.size()[1:]).flatten(1)


def whole_image(net: Any, x: Tensor) -> Tensor:
    return F.avg_pool2d(x[:, None], x.size()[1:])


def constants(net: Any, x: Tensor) -> Tensor:
    x = x * net.scale.item() if not net.flag else x[:, :1]
    return torch.cat([x[..., net.mask], x.repeat_interleave(net.repeats, 2), x[..., net.repeats.nonzero()[:, 0]]], 2)


def upper_triangle(net: Any, x: Tensor) -> Tensor:
    return (x.mT @ x)[:, torch.ones(4, 4, dtype=torch.bool).triu(1)]


def even_twice(net: Any, x: Tensor) -> Tensor:
    for _ in range(2):
        x = F.avg_pool1d(F.pad(x.mT, (2, 1 + x.shape[1] % 2)), 4, 2).mT
    return x


FUNCTIONS = [
    half_rounded_up, third_and_one, last_of_few, to_even, python_numbers, numpy_root, cached_table, scale_of_attention,
    whole_mean, whole_maximum, whole_image, constants, upper_triangle, even_twice,
]  # fmt: skip


@functools.lru_cache(maxsize=1)
def export_of(function: Callable[..., Tensor]) -> ModelExport:
    return ModelExport(net_for(function), {"x": drawn(LENGTHS[0])}, dynamic_axes={"x": {1: "T"}})


def drawn(length: int) -> Tensor:
    return torch.randn(2, length, 4, generator=torch.Generator().manual_seed(length))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_values_are_those_of_pytorch(function: Callable[..., Tensor], version: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = export_of(function).to(TractNNEF(version), tmp_path / "model.nnef.tar")
    assert str(result.range) == "T >= 1"
    engine = result.target.engine()
    assert isinstance(engine, TractEngine)
    reply = engine.run(result.archive, [[drawn(length).numpy()] for length in LENGTHS], keep_going=True)
    assert (reply.status, reply.refused) == ("ok", {}), reply.message
    for length, (output,) in zip(LENGTHS, reply.outputs, strict=True):
        expected = net_for(function)(drawn(length))
        torch.testing.assert_close(torch.from_numpy(output), expected, rtol=1e-4, atol=1e-4, msg=f"at {length}")
