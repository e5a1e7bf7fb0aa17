"""Operators for which NNEF 1.0 has no word of its own, and whose form there is not that of tract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from t2n_core import KhronosNNEF, ModelExport
from t2n_core.errors import SpecError, UnsupportedOpsError
from tests.nets import OfFunction


def numbers(hole: bool = False) -> Tensor:
    x = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(2))
    if hole:
        x[1, 2, 1] = float("nan")
    return x


HALVES = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, -0.0, 1e9, float("inf")])
CASES: dict[str, tuple[Callable[[Tensor], Any], Tensor]] = {
    "product of an odd axis": (lambda x: x.prod(1), numbers()),
    "product of all": (lambda x: x.prod(), numbers()),
    "running product": (lambda x: x.cumprod(1), numbers()),
    "round, halves to even": (torch.round, HALVES),
    "round to decimals": (lambda x: torch.round(x, decimals=2), numbers()),
    "argmax": (lambda x: x.argmax(1), numbers()),
    "argmax of all": (lambda x: x.argmax(), numbers()),
    "argmax, the first NaN": (lambda x: x.argmax(1), numbers(hole=True)),
    "argmax, the first of equals": (lambda x: x.round().argmax(1), numbers()),
    "maxima and their places": (lambda x: x.max(2), numbers()),
    "minima and their places": (lambda x: x.min(2), numbers(hole=True)),
    "any": (lambda x: (x > 1).any(1), numbers()),
    "all": (lambda x: (x > -1).all(), numbers()),
    "maximum of booleans": (lambda x: (x > 0).max(1).values, numbers()),
    "reciprocal": (torch.reciprocal, numbers()),
    "hypot": (lambda x: torch.hypot(x, x.flip(0)), numbers()),
    "spectrum": (lambda x: torch.fft.rfft(x.flatten(1)).abs(), numbers()),
}


@pytest.mark.parametrize("name", CASES)
def test_it_has_a_form(name: str, tmp_path: Path) -> None:
    function, x = CASES[name]
    export = ModelExport(OfFunction(function), x)
    export.to(KhronosNNEF(), tmp_path / "a.tar").assert_parity("close" if name != "spectrum" else "approximate")


def test_arithmetic_of_integers_of_any_size_is_refused() -> None:
    with pytest.raises(UnsupportedOpsError, match="int64"):
        ModelExport(OfFunction(lambda x: x.long() + 1), numbers()).lower(KhronosNNEF())


def test_a_factor_of_many_steps_is_refused() -> None:
    x = torch.randn(65, 65, generator=torch.Generator().manual_seed(2))
    with pytest.raises(UnsupportedOpsError, match="65 steps are beyond 64"):
        ModelExport(OfFunction(torch.linalg.inv), x).lower(KhronosNNEF())


@pytest.mark.parametrize("reduce", [torch.sum, torch.prod], ids=["sum", "prod"])
def test_an_axis_of_no_elements_is_refused(reduce: Callable[..., Tensor], tmp_path: Path) -> None:
    net = OfFunction(lambda x: reduce(x, 1))
    with pytest.raises(SpecError, match=r"has shape \[2, 0, 4\]: extents are positive"):
        ModelExport(net, (torch.randn(2, 0, 4),)).to(KhronosNNEF(), tmp_path / "net.nnef.tar")
