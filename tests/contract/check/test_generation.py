"""Generation in real engines: token by token against PyTorch, with decoders that are right and ones that are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core.check.generation.reference import continuations_of
from t2n_core.export.model import ModelExport
from t2n_core.export.result import ExportResult
from t2n_core.inference_target import TractNNEF
from t2n_core.parity.generation.check import check_generation
from t2n_core.parity.generation.outcome import FurtherStatus, GenerationOutcome
from t2n_core.parity.outcome import Status
from tests.nets import TinyDecoder
from tests.releases import NEWEST

VERSIONS = ["0.21.19", "0.22.4", NEWEST]


def decoder(**options: Any) -> TinyDecoder:
    """Weights of a spread with which the tokens differ."""
    torch.manual_seed(4)
    net = TinyDecoder(**options).eval()
    for weight in net.parameters():
        nn.init.normal_(weight, std=0.7)
    return net


def exported(net: nn.Module, version: str, folder: Path, *, batch: int = 2, size: int = 3) -> ExportResult:
    call = {"tokens": torch.randint(0, 23, (batch, size))}
    call |= {name: torch.randn(batch, 1, 5, 8) for name in ("keys", "values")}
    free = {**({0: "B"} if batch > 1 else {}), **({1: "S"} if size > 1 else {})}
    axes: dict[str, Any] = {"tokens": free} if free else {}
    axes |= {name: {0: "B"} for name in ("keys", "values") if batch > 1}
    export = ModelExport(net, call, state={"keys": 1, "values": 2}, dynamic_axes=axes)
    return export.to(TractNNEF(version, check_io=False), folder / "model.nnef.tar")


def judged(result: ExportResult, net: nn.Module, prompts: Any = None) -> GenerationOutcome:
    """Return the outcome of an archive against another model of the same sizes."""
    (result.archive.parent / "other").mkdir()
    other = exported(net, result.target.version, result.archive.parent / "other")
    continuations, notes = continuations_of(other, prompts, 12)
    return check_generation(result.target.engine(), result.archive, result.state, continuations, notes=notes)


def further(found: GenerationOutcome) -> dict[str, FurtherStatus]:
    return {check.name: check.status for check in found.further}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("window", [1000, 4])
def test_every_token_is_pytorchs(version: str, window: int, tmp_path: Path) -> None:
    net = decoder(window=window)
    generation = exported(net, version, tmp_path).check_generation(steps=12)
    assert generation.outcome.status is Status.PASS, generation.describe()
    assert generation.tokens == "36/36"
    assert len({step.expected for step in generation.steps}) > 3
    ways = further(generation)
    assert set(ways.values()) == {FurtherStatus.PASS}
    assert ("state held by the engine" in ways) == (version >= "0.23")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_archive_of_one_token_a_step(version: str, tmp_path: Path) -> None:
    net = decoder()
    generation = exported(net, version, tmp_path, batch=1, size=1).check_generation(steps=12)
    assert (generation.outcome.status, generation.tokens) == (Status.PASS, "36/36"), generation.describe()
    assert further(generation)["prompts in a batch"] is FurtherStatus.SKIPPED


def test_a_window_that_the_archive_lacks_shows_at_its_first_step(tmp_path: Path) -> None:
    """The other exporter's mistake: one full mask, whatever the window."""
    result = exported(decoder(), NEWEST, tmp_path)
    generation = judged(result, decoder(window=6), [[3, 5, 1, 4]])
    assert generation.outcome.status is Status.MISMATCH
    assert generation.first_different is not None
    assert generation.first_different.step == 3  # four tokens of the prompt and three more are seven
    assert "the state, or a position computed from its size, is wrong" in str(generation.outcome.error)


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
    generation = judged(exported(net.eval(), "0.22.4", tmp_path), decoder())
    assert generation.outcome.status is Status.MISMATCH
    assert generation.first_different is not None
    assert generation.first_different.step == 1


def test_an_engine_that_dies_in_a_step_is_an_outcome(tmp_path: Path) -> None:
    """The table of positions ends at 64."""
    net, long = decoder(), decoder()
    with torch.no_grad():
        long.positions = nn.Embedding.from_pretrained(torch.cat([net.positions.weight] * 2))
    generation = judged(exported(net, NEWEST, tmp_path), long, [list(range(20)) * 3])
    assert generation.outcome.status in (Status.CRASH, Status.ERROR)
    assert len(generation.steps) == 5
    assert "5 of 12 tokens were generated before" in str(generation.outcome.error)
