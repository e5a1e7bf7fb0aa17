"""Sums, means, norms and variances over a million elements are PyTorch's, although engines add one by one in float32.

The plain statements are 0.1 % to 65 % off here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core import ModelExport, TractNNEF
from tests.nets import OfFunction
from tests.releases import NEWEST, OLDEST, on_each_line

VERSIONS = on_each_line(OLDEST, NEWEST)
MILLION, NO_BLOCKS = 1_000_000, 1_000_003  # a prime has no factors
Net = Callable[[Tensor], Any]


def assert_right(
    net: Net, version: str, path: Path, example: Tensor, *others: Tensor, axes: Mapping[int, Any] | None = None
) -> None:
    export = ModelExport(
        OfFunction(net).eval(),
        example,
        input_names=["x"],
        dynamic_axes={"x": axes} if axes else None,
        extra_inputs=[(other,) for other in others],
    )
    export.to(TractNNEF(version, check_io=False), path.with_suffix(".nnef.tar")).assert_parity()


def statistics(x: Tensor) -> tuple[Tensor, ...]:
    return x.norm(dim=1), x.pow(2).mean(1), x.std(1), x.abs().sum(1), x.mean(1)


def far_from_zero(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)) + 100


@pytest.mark.parametrize("version", VERSIONS)
def test_dynamic_axis(version: str, tmp_path: Path) -> None:
    """T may be any size: one, and two million."""
    longest = far_from_zero(1, 2 * MILLION + 1)
    others = far_from_zero(1, 2), longest, longest - 100
    assert_right(statistics, version, tmp_path / "model", far_from_zero(1, 1000), *others, axes={1: "T"})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shape", [(1, MILLION), (1, NO_BLOCKS), (2, MILLION, 1)], ids=["blocks", "prime", "middle"])
def test_static_axis(shape: tuple[int, ...], version: str, tmp_path: Path) -> None:
    assert_right(statistics, version, tmp_path / "model", far_from_zero(*shape))


@pytest.mark.parametrize("version", VERSIONS)
def test_several_axes(version: str, tmp_path: Path) -> None:
    def everything(x: Tensor) -> tuple[Tensor, ...]:
        return x.mean(), x.sum((1, 3)), x.var((0, 1, 2, 3)), x.square().mean((2, 3))

    large = far_from_zero(1, 3, 700, 900)
    assert_right(everything, version, tmp_path / "static", large)
    assert_right(everything, version, tmp_path / "one", far_from_zero(1, 3, 700, 5), large, axes={3: "T"})
    assert_right(everything, version, tmp_path / "two", far_from_zero(1, 3, 4, 5), large, axes={2: "H", 3: "W"})


@pytest.mark.parametrize("version", VERSIONS)
def test_norms(version: str, tmp_path: Path) -> None:
    def norms(x: Tensor) -> tuple[Tensor, ...]:
        return F.group_norm(x, 2), F.instance_norm(x), F.layer_norm(x, x.shape[1:]), F.rms_norm(x, x.shape[2:])

    large = far_from_zero(1, 4, 300_000)
    assert_right(norms, version, tmp_path / "static", large)

    def of_any_size(x: Tensor) -> tuple[Tensor, ...]:
        return F.group_norm(x, 2), F.instance_norm(x), F.normalize(x, dim=2), F.log_softmax(x, 2)

    assert_right(of_any_size, version, tmp_path / "dynamic", far_from_zero(1, 4, 50), large, axes={2: "T"})


@pytest.mark.parametrize("version", VERSIONS)
def test_no_elements(version: str, tmp_path: Path) -> None:
    def sums(x: Tensor) -> tuple[Tensor, ...]:
        return x.sum(1), x.sum((1, 2)), x.square().sum((0, 1))

    example, empty = far_from_zero(2, 0, 3), far_from_zero(2, 9000, 3)
    assert_right(sums, version, tmp_path / "model", example, empty, axes={1: torch.export.Dim("T", min=0)})
