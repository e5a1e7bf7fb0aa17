"""Copies of bfloat16 models in float32: all that the model holds, and the model as it was."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from t2n_core.torch_graph.frontend.bfloat16 import without_bfloat16


class Scaled(nn.Module):
    """Multiplies by a weight and a number of Python, with a layer of its own inside."""

    def __init__(self, weight: float, factor: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), weight, dtype=torch.bfloat16))
        self.factor = factor
        self.inner = nn.Linear(4, 4, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * self.weight * self.factor


class OtherWeights(Scaled):
    def __deepcopy__(self, memo: dict[int, Any]) -> OtherWeights:
        return OtherWeights(2.0)


class OtherNumber(Scaled):
    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "factor": 2.0}


class Restored(Scaled):
    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "factor": 2.0})


class Rebuilt(Scaled):
    def __reduce__(self) -> Any:
        return Rebuilt, (2.0,)


def widened(model: nn.Module) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return without_bfloat16(model, [])[0]


@pytest.mark.parametrize("kind", [Scaled, OtherWeights, OtherNumber, Restored, Rebuilt])
@pytest.mark.parametrize("inside", [False, True])
def test_a_copy_computes_what_the_model_does(kind: type[Scaled], inside: bool) -> None:
    torch.manual_seed(3)
    model: nn.Module = nn.Sequential(nn.Tanh(), kind(3.0, 5.0)) if inside else kind(3.0, 5.0)
    copied = widened(model)
    x = torch.randn(3, 4, dtype=torch.bfloat16)
    torch.testing.assert_close(copied(x.float()), model(x).float(), rtol=2e-2, atol=2e-2)
    assert all(parameter.dtype == torch.float32 for parameter in copied.parameters())
    assert all(parameter.dtype == torch.bfloat16 for parameter in model.parameters())


def of_graph() -> nn.Module:
    return torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4, dtype=torch.bfloat16), nn.ReLU()))


def tied() -> nn.Module:
    layer = nn.Linear(4, 4, dtype=torch.bfloat16)
    return nn.Sequential(layer, nn.Tanh(), layer)


OF_PYTORCH = {
    "graph": of_graph,
    "script": lambda: torch.jit.script(nn.Linear(4, 4, dtype=torch.bfloat16)),
    "weight norm": lambda: parametrizations.weight_norm(nn.Linear(4, 4, dtype=torch.bfloat16)),
    "tied": tied,
}


@pytest.mark.parametrize("name", list(OF_PYTORCH))
def test_models_that_pytorch_copies_in_its_own_way(name: str) -> None:
    torch.manual_seed(3)
    model = OF_PYTORCH[name]()
    copied = widened(model)
    x = torch.randn(3, 4, dtype=torch.bfloat16)
    torch.testing.assert_close(copied(x.float()), model(x).float(), rtol=2e-2, atol=2e-2)
    assert len(list(copied.parameters())) == len(list(model.parameters()))
