"""Indices and counts: the standard has no arithmetic of integers, so they are computed where float32 is exact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from t2n_core import KhronosNNEF, ModelExport
from t2n_core.errors import T2NError
from tests.nets import net_of


def calls(function: Callable[..., Any]) -> nn.Module:
    return net_of(lambda _, *inputs: function(*inputs))


def numbers(*shape: int) -> Tensor:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2))
    x.view(-1)[::7] = float("inf")
    return x


def places(size: int, *shape: int) -> Tensor:
    return torch.randint(0, size, shape, generator=torch.Generator().manual_seed(3))


X = numbers(3, 5, 4)
TIES = torch.tensor([[2.0, 1.0, 2.0, float("nan"), 1.0, -3.0]]).repeat(2, 1)
CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "gather": (lambda x, i: x.gather(1, i), (X, places(5, 2, 7, 3))),
    "gather of integers": (lambda x, i: (x > 0).to(torch.int64).gather(2, i), (X, places(4, 3, 5, 2))),
    "index from the end": (lambda x, i: (x[:, i], x.index_select(1, i + 5)), (X, places(5, 3) - 5)),
    "index of two axes": (lambda x, i, j: x[i, :, j], (X, places(3, 2), places(4, 2))),
    "scatter": (lambda x, i, v: x.scatter(1, i, v), (X, places(5, 2, 1, 3), numbers(2, 1, 3))),
    "scatter_add": (lambda x, i, v: x.scatter_add(0, i, v), (X[:2], places(2, 4, 5, 4), X.repeat(2, 1, 1)[:4])),
    "largest of what is written": (
        lambda x, i, v: x.scatter_reduce(1, i, v, "amax", include_self=False),
        (X, places(5, 3, 6, 4), numbers(3, 6, 4)),
    ),
    "index_put that adds": (
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
        (torch.ones(5, 2), places(5, 7), torch.ones(7, 2)),
    ),
    "sort": (lambda x: x.sort(1), (TIES,)),
    "topk": (lambda x: x.topk(3, 1), (X,)),
    "kthvalue": (lambda x: x.kthvalue(2, 1), (X,)),
    "cummax": (lambda x: x.cummax(1), (X,)),
    "bucketize": (lambda x, b: torch.bucketize(x, b), (X, torch.tensor([-1.0, 0.0, 0.5]))),
    "cross entropy": (lambda x, t: functional.cross_entropy(x, t), (numbers(4, 3).clamp(max=9), places(3, 4))),
    "pooled places": (lambda x: functional.adaptive_max_pool2d(x, 2, return_indices=True), (X,)),
    "unpooled": (
        lambda x, i: functional.max_unpool2d(x, i, 2),
        (torch.ones(1, 2, 1, 2), torch.tensor([[[[1, 6]], [[0, 3]]]])),
    ),
    "sampled": (
        lambda x, g: functional.grid_sample(x, g, align_corners=False),
        (torch.rand(1, 2, 3, 4, 5), torch.rand(1, 2, 2, 3, 3) * 2.4 - 1.2),
    ),
    "remainder": (
        lambda x, y: (x % y, torch.fmod(x, y), x // y),
        (torch.tensor([1.0, -1.0, 5.5, 3e8, -7.0, 0.0]), torch.tensor([0.1, 0.1, -2.0, 7.0, float("inf"), 3.0])),
    ),
    "counts": (lambda x: (x > 0).sum(1) * 3 - (x > 1).sum(1), (X,)),
    "lgamma": (torch.lgamma, (torch.tensor([0.5, 1.0, 2.5, 20.0, -1.5]),)),
}


@pytest.mark.parametrize("name", CASES)
def test_it_has_a_form(name: str, tmp_path: Path) -> None:
    function, inputs = CASES[name]
    export = ModelExport(calls(function), inputs)
    export.to(KhronosNNEF(), tmp_path / "a.tar").assert_parity("approximate")


@pytest.mark.parametrize("name", ["sum", "product of counts", "largest"])
def test_numbers_that_may_be_large_are_refused(name: str, tmp_path: Path) -> None:
    function: Callable[[Tensor], Tensor] = {
        "sum": lambda x: x + 1,
        "product of counts": lambda x: (x > 0).sum() * 2**23,
        "largest": lambda x: x.amax(0),
    }[name]
    export = ModelExport(calls(function), torch.arange(7))
    with pytest.raises(T2NError, match=r"values may be beyond 2\^24"):
        export.to(KhronosNNEF(), tmp_path / "a.tar")


def test_integers_of_any_size_are_compared_with_small_ones(tmp_path: Path) -> None:
    export = ModelExport(calls(lambda x: (x < 3, x == -2, x >= 2**23)), torch.tensor([2, 3, -2, 2**40, -(2**40)]))
    export.to(KhronosNNEF(), tmp_path / "a.tar").assert_parity("exact")


def test_a_quotient_that_is_too_large_gives_nan_and_no_wrong_remainder(tmp_path: Path) -> None:
    export = ModelExport(calls(lambda x: torch.fmod(x, 0.3)), torch.tensor([1e30, 1e12, 1e9]))
    outcome = export.to(KhronosNNEF(), tmp_path / "a.tar").check_parity("exact")
    assert "3 NaN where the other side has none" in outcome.describe()
