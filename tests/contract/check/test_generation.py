"""Generation in real engines: token by token against PyTorch, with decoders that are right and ones that are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from t2n_core.check.generation.check import check_generation
from t2n_core.check.generation.outcome import FurtherStatus, GenerationOutcome
from t2n_core.check.generation.reference import continuations_of
from t2n_core.check.outcome import Status
from t2n_core.check.state_pairs import StatePair
from t2n_core.export.model import ModelExport
from t2n_core.export.result import ExportResult
from t2n_core.inference_target import TractNNEF
from t2n_core.torch_graph.sizes.declared_axes import SizeFrom
from tests.nets import TinyDecoder

VERSIONS = ["0.21.19", "0.22.4", "0.23.9"]
NAMES = ["tokens", "keys", "values"]
INITIAL = (torch.zeros(1, 1, 0, 8), torch.zeros(1, 1, 0, 8))
STATE = tuple(StatePair(name, f"next_{name}", np.zeros((1, 1, 0, 8), "f4"), (2,)) for name in NAMES[1:])


def decoder(**options: Any) -> TinyDecoder:
    """Weights of a spread with which the tokens differ."""
    torch.manual_seed(4)
    net = TinyDecoder(**options).eval()
    for weight in net.parameters():
        nn.init.normal_(weight, std=0.7)
    return net


def exported(net: nn.Module, version: str, folder: Path, *, batch: int = 2, size: int = 3) -> ExportResult:
    first = {0: "B"} if batch > 1 else {}
    axes: dict[str, dict[int, Any]] = {"tokens": {**first, **({1: "S"} if size > 1 else {})}}
    axes |= {name: {**first, 2: SizeFrom("P")} for name in NAMES[1:]}
    call = (torch.randint(0, 23, (batch, size)), torch.randn(batch, 1, 5, 8), torch.randn(batch, 1, 5, 8))
    export = ModelExport(
        net,
        call,
        input_names=NAMES,
        output_names=["logits", "next_keys", "next_values"],
        dynamic_axes={name: axis for name, axis in axes.items() if axis},
    )
    return export.to(TractNNEF(version, check_io=False), folder / "model.nnef.tar")


def generated(
    result: ExportResult, net: nn.Module, *, prompts: Any = None, steps: int = 12, level: str = "approximate"
) -> GenerationOutcome:
    given, notes = continuations_of(net, prompts, steps, initial=INITIAL, vocabulary=23)
    return check_generation(result.target.engine(), result.archive, STATE, given, tolerance=level, notes=notes)


def further(found: GenerationOutcome) -> dict[str, FurtherStatus]:
    return {one.name: one.status for one in found.further}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("window", [1000, 4])
def test_every_token_is_pytorchs(version: str, window: int, tmp_path: Path) -> None:
    net = decoder(window=window)
    found = generated(exported(net, version, tmp_path), net)
    assert found.outcome.status is Status.PASS, found.describe()
    assert found.tokens == "36/36"
    assert len({step.expected for step in found.steps}) > 3
    ways = further(found)
    assert set(ways.values()) == {FurtherStatus.PASS}
    assert ("state held by the engine" in ways) == (version >= "0.23")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_archive_of_one_token_a_step(version: str, tmp_path: Path) -> None:
    net = decoder()
    found = generated(exported(net, version, tmp_path, batch=1, size=1), net)
    assert (found.outcome.status, found.tokens) == (Status.PASS, "36/36"), found.describe()
    assert further(found)["prompts in a batch"] is FurtherStatus.SKIPPED


def test_a_window_that_the_archive_lacks_shows_at_its_first_step(tmp_path: Path) -> None:
    """The other exporter's mistake: one full mask, whatever the window."""
    result = exported(decoder(), "0.23.9", tmp_path)
    found = generated(result, decoder(window=6), prompts=[[3, 5, 1, 4]])
    assert found.outcome.status is Status.MISMATCH
    assert found.first_different is not None
    assert found.first_different.step == 3  # four tokens of the prompt and three more are seven
    assert "the state, or a position made of its size, is wrong" in str(found.outcome.error)


class Shifted(TinyDecoder):
    """Counts positions anew in each step, as if the past were always empty."""

    def forward(
        self, tokens: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        past, size = keys.shape[2], tokens.shape[1]
        places = torch.arange(size)
        x = self.embedding(tokens) + self.positions(places)
        q, k, v = (part.unsqueeze(1) for part in self.qkv(x).chunk(3, -1))
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        seen = torch.arange(past + size) <= places[:, None] + past
        mixed = nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
        return self.head((x + mixed.squeeze(1))[:, -1:]), keys, values


def test_wrong_positions_behind_the_prompt_show(tmp_path: Path) -> None:
    net = Shifted()
    net.load_state_dict(decoder().state_dict())
    found = generated(exported(net.eval(), "0.22.4", tmp_path), decoder())
    assert found.outcome.status is Status.MISMATCH
    assert found.first_different is not None
    assert found.first_different.step == 1


def test_an_engine_that_dies_in_a_step_is_an_outcome(tmp_path: Path) -> None:
    """The table of positions ends at 64."""
    net, long = decoder(), decoder()
    with torch.no_grad():
        long.positions = nn.Embedding.from_pretrained(torch.cat([net.positions.weight] * 2))
    found = generated(exported(net, "0.23.9", tmp_path), long, prompts=[list(range(20)) * 3], steps=12)
    assert found.outcome.status in (Status.CRASH, Status.ERROR)
    assert len(found.steps) == 5
    assert "5 of 12 tokens had come before" in str(found.outcome.error)
