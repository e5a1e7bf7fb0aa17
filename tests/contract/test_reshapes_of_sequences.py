"""A reshape of a scan's sequence, which 0.23.0 to 0.23.8 would move into the scan and then refuse to load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF

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


@pytest.mark.parametrize("name", list(FOLLOWERS))
@pytest.mark.parametrize("version", ["0.22.4", "0.23.0", "0.23.8", "0.23.9"])
def test_a_reshape_behind_a_scan(version: str, name: str, tmp_path: Path) -> None:
    """A barrier stands before the reshape where the version needs it, and nowhere else: it costs time."""
    torch.manual_seed(3)
    axes = None if name == "in frames" else {"x": {0: "T"}}
    export = ModelExport(Followed(FOLLOWERS[name]).eval(), {"x": torch.randn(6, 4, 5)}, dynamic_axes=axes)
    result = export.to(TractNNEF(version), tmp_path / "model.nnef.tgz")
    barriers = [o for o in result.graph.operations if o.name == "tract_core_trilu"]
    assert len(barriers) == (name != "plain" and version in ("0.23.0", "0.23.8"))
    result.assert_parity("approximate")
