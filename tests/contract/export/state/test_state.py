"""Models with state: archives whose outputs are fed back compute what the model does, from nothing on."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.engine.protocol import Engine
from t2n_core.errors import StateWarning
from t2n_core.export.result import ExportResult
from tests.releases import NEWEST

VERSIONS = ("0.19.15", "0.21.19", NEWEST)


class Past:
    """Keys and values of an attention layer."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self.keys, self.values = keys, values


class Attention(nn.Module):
    """Causal attention over what it has seen and the new rows."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.project = nn.Linear(6, 18)

    def forward(self, x: torch.Tensor, past: Past) -> torch.Tensor:
        query, key, value = self.project(x).chunk(3, dim=-1)
        past.keys, past.values = torch.cat([past.keys, key], 1), torch.cat([past.values, value], 1)
        seen = past.keys.shape[1]
        ahead = torch.arange(seen) > torch.arange(seen - x.shape[1], seen)[:, None]
        scores = (query @ past.keys.transpose(1, 2)).masked_fill(ahead, -1e4)
        return scores.softmax(-1) @ past.values


class Recurrent(nn.Module):
    """An LSTM that is run in pieces."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.LSTM(6, 5, 2, batch_first=True)

    def forward(self, x: torch.Tensor, hx: Any) -> Any:
        return self.net(x, hx)


class Convolution(nn.Module):
    """A causal convolution that keeps the last rows of its input, and their number in a tensor."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Conv1d(6, 4, 3)

    def forward(self, x: torch.Tensor, rows: torch.Tensor, count: torch.Tensor) -> Any:
        sequence = torch.cat([rows, x], dim=1)
        return {
            "y": self.net(sequence.transpose(1, 2)).transpose(1, 2),
            "rows": sequence[:, -2:],
            "count": count + x.shape[1],
        }


def example(model: nn.Module) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Return a call of the model, its option `state`, and its dynamic axes."""
    x = torch.randn(2, 3, 6)
    if isinstance(model, Attention):
        past = Past(torch.randn(2, 4, 6), torch.randn(2, 4, 6))
        return {"x": x, "past": past}, "past", {"x": {0: "B", 1: "S"}, "past": {0: "B"}}
    if isinstance(model, Recurrent):
        return {"x": x, "hx": (torch.randn(2, 2, 5), torch.randn(2, 2, 5))}, {"hx": 1}, {"x": {1: "S"}}
    call = {"x": x, "rows": torch.randn(2, 2, 6), "count": torch.tensor([7])}
    return call, ["rows", "count"], {"x": {1: "S"}}


def export(model: nn.Module, version: str, folder: Path) -> ExportResult:
    torch.manual_seed(1)
    call, state, axes = example(model)
    made = ModelExport(model.eval(), call, state=state, dynamic_axes=axes)
    return made.to(TractNNEF(version, check_io=False), folder / "model.nnef.tgz")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [Attention, Recurrent, Convolution])
def test_pieces_give_what_the_whole_gives(
    kind: type[nn.Module], version: str, tmp_path: Path, tract_engine: Any
) -> None:
    result = export(model := kind(), version, tmp_path)
    result.assert_parity()
    torch.manual_seed(2)
    sequence = torch.randn(2, 8, 6)
    state = {pair.input: pair.initial for pair in result.state}
    engine: Engine = tract_engine(version)
    pieces = []
    for piece in sequence.split([1, 4, 3], dim=1):
        inputs = {"x": piece.numpy(), **state}
        reply = engine.run(result.archive, [[inputs[name] for name in result.input_names]])
        assert reply.status == "ok", reply.message
        outputs = dict(zip(result.output_names, reply.outputs[0], strict=True))
        state = {pair.input: outputs.pop(pair.output) for pair in result.state}
        pieces += outputs.values()
    with torch.no_grad():
        if isinstance(model, Attention):
            expected = model(sequence, Past(torch.zeros(2, 0, 6), torch.zeros(2, 0, 6)))
        elif isinstance(model, Recurrent):
            expected = model(sequence, None)[0]
        else:
            expected = model(sequence, torch.zeros(2, 2, 6), torch.zeros(1, dtype=torch.int64))["y"]
            assert state["in_count"].tolist() == [8]
    np.testing.assert_allclose(np.concatenate(pieces, 1), expected.numpy(), atol=1e-5)


def test_what_grows_may_be_empty(tmp_path: Path) -> None:
    result = export(Attention(), NEWEST, tmp_path)
    assert str(result.range) == "B >= 1, P >= 0, S >= 1"
    assert [(pair.input, pair.output, pair.growing) for pair in result.state] == [
        ("in_past_key", "out_past_key", (1,)),
        ("in_past_value", "out_past_value", (1,)),
    ]
    assert [pair.initial.shape for pair in result.state] == [(2, 0, 6)] * 2
    assert any(sample.sizes["P"] == 0 for sample in result.samples)


class Begun(nn.Module):
    """A causal sum whose first call begins with a learned number, or with the first element again."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.full((1, 3), start))

    def forward(self, x: torch.Tensor, total: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        if total is None:
            total = self.start.expand(x.shape[0], 3)
        sums = total[:, None] + x.cumsum(1)
        return sums, sums[:, -1]


@pytest.mark.parametrize(("start", "differs"), [(0.0, False), (2.5, True)])
def test_a_first_call_that_is_no_step_from_zeros_is_told(start: float, differs: bool, tmp_path: Path) -> None:
    inputs = {"x": torch.randn(2, 4, 3), "total": torch.randn(2, 3)}
    export = ModelExport(Begun(start), inputs, state={"total": 1})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = export.to(TractNNEF(NEWEST), tmp_path / "m.tar")
    messages = [str(warning.message) for warning in caught if warning.category is StateWarning]
    assert bool(messages) == differs
    assert list(result.notes) == messages
    result.assert_parity("approximate")
