"""The scan of all objects for fake tensors takes as long as a small capture: it runs only if the model may hold one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from t2n_core import ModelExport
from t2n_core.torch_graph.capture import leftovers


def test_tensors_of_passes_and_of_random_states_need_no_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch keeps graphs that it has rewritten, nodes that it took out of them, and states of random numbers."""
    monkeypatch.setattr(leftovers, "_holders", lambda tensors: pytest.fail(f"a scan for {len(tensors)} tensors"))
    model = nn.Sequential(nn.Conv2d(3, 5, 2), nn.BatchNorm2d(5), nn.ReLU(inplace=True), nn.Dropout(0.5)).eval()
    export = ModelExport(model, {"input": torch.randn(2, 3, 7, 11)}, dynamic_axes={"input": {0: "B", 2: "H"}})
    assert export.captured.symbols == {"B": 2, "H": 7}
