"""A loop that Python unrolled, on real engines: its steps read one row each of what is computed at once."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from tests.releases import NEWEST


class Unrolled(nn.Module):
    """A recurrence over the six frames of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.rates, self.inputs = nn.Linear(5, 7), nn.Linear(5, 7)

    def forward(self, x: Tensor) -> Tensor:
        rates, inputs = torch.sigmoid(self.rates(x)), self.inputs(x)
        state, states = torch.zeros(x.shape[0], 7), []
        for step in range(x.shape[1]):
            state = rates[:, step] * state + inputs[:, step]
            states.append(state)
        return torch.stack(states, 1)


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
@pytest.mark.parametrize("axes", [None, {"x": {0: "B"}}])
def test_an_unrolled_loop(axes: dict[str, dict[int, str]] | None, version: str, tmp_path: Path) -> None:
    torch.manual_seed(4)
    export = ModelExport(Unrolled().eval(), {"x": torch.randn(3, 6, 5)}, dynamic_axes=axes)
    result = export.to(TractNNEF(version), tmp_path / "model.nnef.tar")
    gathers = [operation for operation in result.graph.operations if operation.name == "tract_core_gather"]
    assert bool(gathers) == (version == NEWEST)
    result.assert_parity("approximate")
