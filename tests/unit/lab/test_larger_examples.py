"""An example with one element more along the axes that a model takes so."""

from __future__ import annotations

import torch
from torch import nn

from conformance.lab.measure.peers.architectures import larger
from conformance.lab.measure.peers.exporters import Flat


class Pairs(nn.Module):
    """Takes an even number of steps."""

    def forward(self, x: torch.Tensor, scale: float) -> torch.Tensor:
        return scale * x.view(x.shape[0], -1, 2).sum(2)


def test_an_axis_that_the_model_refuses_keeps_its_size() -> None:
    example = {"x": torch.ones(3, 4), "scale": 2.0}
    flat = Flat(Pairs(), list(example))
    more = larger(flat, example, {"x": {0: "B", 1: "T"}})
    assert more["x"].shape == (4, 4)
    assert more["scale"] == 2.0
    assert example["x"].shape == (3, 4)
