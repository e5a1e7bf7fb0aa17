"""The check notices decisions on sizes that the exporter has lost: its sizes come from the code of the model too."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.torch_graph.capture import reading
from tests.releases import NEWEST

LIMIT = 37


class Net(nn.Module):
    def __init__(self, decides: Callable[[Any, int, int], bool], number: int = 0) -> None:
        super().__init__()
        self.decides = decides
        self.number = number

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        twice = self.decides(self, x.shape[1], y.shape[1])
        return (x.sum(1) + y.sum(1)) * (2.0 if twice else 1.0)


def in_a_helper(net: Any, s: int, t: int) -> bool:
    return beyond_the_limit(t)


def beyond_the_limit(size: int) -> bool:
    return size > LIMIT


def in_a_closure(limit: int) -> Callable[[Any, int, int], bool]:
    return lambda net, s, t: s >= limit


def of_text(text: str) -> Callable[[Any, int, int], bool]:
    scope: dict[str, Any] = {}
    exec(compile(f"def decides(net, s, t):\n    return {text}", f"<{text}>", "exec"), scope)
    scope["decides"].__module__ = __name__
    decides: Callable[[Any, int, int], bool] = scope["decides"]
    return decides


NUMBERS = (13, 64, 100, 255)
TEXTS = (
    *("t > {}", "t >= {}", "s == {}", "t == {}", "t % {} == 9", "s * t == {}", "s + t == {}", "s - t == {}"),
    *("t ** 2 == {} ** 2", "s == t and t > {}", "max(s, t) > {}", "t in ({}, 1000)"),
)
MODELS = {text.format(n): of_text(text.format(n)) for text, n in itertools.product(TEXTS, NUMBERS)}
MODELS |= {"a helper": in_a_helper, "a closure": in_a_closure(41), "an attribute": lambda net, s, t: t > net.number}


def lost(sizes: Any, decisions: Any, *rest: Any) -> Any:
    return sizes, [], []


@pytest.mark.parametrize("name", list(MODELS))
def test_a_lost_decision_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reading, "narrow_range", lost)
    generator = torch.Generator().manual_seed(0)
    example = {"x": torch.randn(2, 5, 3, generator=generator), "y": torch.randn(2, 7, 3, generator=generator)}
    axes = {"x": {1: "S"}, "y": {1: "T"}}
    export = ModelExport(Net(MODELS[name], 53).eval(), example, dynamic_axes=axes)
    outcome = export.to(TractNNEF(NEWEST), tmp_path / "model.nnef.tar").check_parity()
    assert outcome.status == "mismatch"
