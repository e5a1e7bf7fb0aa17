"""Reshapes that a release moves to where it gets them wrong.

Reshapes of a scan's sequence make releases up to 0.23.8 refuse to load, up to 0.22 where the model is decluttered;
those of a sum with a product in it are computed wrongly by 0.20.3 to 0.20.18, or end the process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from tests.releases import NEWEST

FOLLOWERS: dict[str, Callable[[Tensor], Tensor]] = {
    "flattened": lambda y: y.flatten(0, 1),
    "through another layer": lambda y: (y + 1).relu().flatten(0, 1),
    "through a concat": lambda y: torch.cat([y, y.tanh()], -1).flatten(0, 1),
    "through a slice": lambda y: y[..., :4].flatten(0, 1),
    "through a softmax": lambda y: y.softmax(-1).flatten(0, 1),
    "behind a permutation": lambda y: y.transpose(0, 1).flatten(0, 1),
    "in frames": lambda y: y.reshape(2, -1, *y.shape[1:]),
    "plain": lambda y: y * 2,
}


class Followed(nn.Module):
    """A net of two layers, and what comes behind its sequence."""

    def __init__(self, follower: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.net, self.follower = nn.RNN(5, 7, 2), follower

    def forward(self, x: Tensor) -> Tensor:
        return self.follower(self.net(x)[0])


@lru_cache(maxsize=1)
def followed(name: str) -> ModelExport:
    """The export of a net with a follower; the versions of it follow each other and share its capture."""
    torch.manual_seed(3)
    axes = None if name == "in frames" else {"x": {0: "T"}}
    return ModelExport(Followed(FOLLOWERS[name]).eval(), {"x": torch.randn(6, 4, 5)}, dynamic_axes=axes)


@pytest.mark.parametrize("version", ["0.22.4", "0.23.0", "0.23.8", NEWEST])
@pytest.mark.parametrize("name", list(FOLLOWERS))
def test_a_reshape_behind_a_scan(version: str, name: str, tmp_path: Path) -> None:
    """A barrier stands before the reshape where the version needs it, and nowhere else: it costs time."""
    result = followed(name).to(TractNNEF(version), tmp_path / "model.nnef.tgz")
    barriers = [o for o in result.graph.operations if o.name == "tract_core_trilu"]
    assert len(barriers) == (name != "plain" and version != NEWEST)
    result.assert_parity("approximate")


W, B = torch.randn(2, 7, 28, generator=torch.Generator().manual_seed(5))
SUMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "of a vector and a matrix": lambda x, y: (x @ W + y).view(4, 1, 7),
    "with a constant": lambda x, y: (x @ W + B[:1]).view(4, 7),
    "behind an activation": lambda x, y: (x @ W + y).relu().view(28).view(7, 4),
    "of two products": lambda x, y: (x @ W - x @ B).view(2, 2, 7),
    "of a batch": lambda x, y: ((x * B[:3, None, :7]) @ W + y * B[:3, None]).view(3, 4, 7),
}


class Summed(nn.Module):
    """A product, a sum, and the sum in another shape."""

    def __init__(self, shaped: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.shaped = shaped

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.shaped(x, y)


@lru_cache(maxsize=1)
def summed(name: str) -> ModelExport:
    """The export of a sum; the versions of it follow each other and share its capture."""
    return ModelExport(Summed(SUMS[name]).eval(), (torch.randn(1, 1, 7), torch.randn(1, 1, 28)))


@pytest.mark.parametrize("version", ["0.19.15", "0.20.3", "0.20.18", "0.20.19"])
@pytest.mark.parametrize("name", list(SUMS))
def test_a_reshape_behind_a_sum(version: str, name: str, tmp_path: Path) -> None:
    result = summed(name).to(TractNNEF(version), tmp_path / "model.nnef.tgz")
    assert any(o.name == "tract_core_trilu" for o in result.graph.operations) == (version in ("0.20.3", "0.20.18"))
    result.assert_parity("approximate")
