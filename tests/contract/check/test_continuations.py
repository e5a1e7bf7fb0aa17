"""References of a generation, made by PyTorch: by `generate` of transformers, or by the steps of any other model."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core.check.generation.reference import LENGTHS, continuations_of
from t2n_core.errors import InputError
from t2n_core.export.model import ModelExport
from t2n_core.export.result import ExportResult
from t2n_core.inference_target import TractNNEF
from tests.nets import TinyDecoder
from tests.releases import NEWEST

STATE = {"keys": 1, "values": 2}
Export = Callable[[nn.Module], ExportResult]


def decoder() -> TinyDecoder:
    torch.manual_seed(4)
    net = TinyDecoder().eval()
    for weight in net.parameters():
        nn.init.normal_(weight, std=0.7)
    return net


@pytest.fixture
def export_of(tmp_path: Path) -> Callable[[nn.Module], ExportResult]:
    def export(net: nn.Module) -> ExportResult:
        call = {"tokens": torch.randint(0, 23, (1, 3)), **{name: torch.randn(1, 1, 5, 8) for name in STATE}}
        made = ModelExport(net, call, state=STATE, dynamic_axes={"tokens": {1: "S"}})
        return made.to(TractNNEF(NEWEST, check_io=False), tmp_path / "model.nnef.tar")

    return export


def test_steps_with_a_cache_are_the_whole_computed_at_once(export_of: Export) -> None:
    net = decoder()
    continuations, notes = continuations_of(export_of(net), [[4, 1, 7], torch.tensor([[2, 2], [9, 0]])], 5)
    assert notes == []
    assert [continuation.prompt.tolist() for continuation in continuations] == [[[4, 1, 7]], [[2, 2]], [[9, 0]]]
    for continuation in continuations:
        ids = torch.from_numpy(continuation.prompt)
        for token, logits in zip(continuation.tokens, continuation.logits, strict=True):
            full_logits = net(ids, torch.zeros(1, 1, 0, 8), torch.zeros(1, 1, 0, 8))[0][0, -1]
            torch.testing.assert_close(torch.from_numpy(logits), full_logits)
            assert full_logits.argmax() == token
            ids = torch.cat([ids, torch.tensor([[token]])], 1)


def test_prompts_are_drawn_until_the_tokens_differ(export_of: Export) -> None:
    net = decoder()
    with torch.no_grad():
        net.head.bias[3] = 20.0
    continuations, _ = continuations_of(export_of(net), None, 4)
    assert {int(token) for continuation in continuations for token in continuation.tokens} == {3}
    assert [continuation.prompt.shape[1] for continuation in continuations] == [*LENGTHS] * 4
    again, _ = continuations_of(export_of(decoder()), 2, 4)
    assert len(again) == 2
    assert (again[0].prompt == continuations[0].prompt).all(), "the same prompts in every session"


def test_a_window_is_passed_or_named(export_of: Export) -> None:
    net = decoder()
    result = export_of(net)
    for window, note in ((20, []), (500, ["no prompt with its 5 steps passes the sliding window of 500 tokens"])):
        net.config = SimpleNamespace(vocab_size=23, sliding_window=window)
        continuations, notes = continuations_of(result, None, 5)
        assert notes == note
        assert (max(continuation.prompt.shape[1] for continuation in continuations) + 5 > window) == (not note)


@pytest.mark.parametrize(
    ("prompts", "steps", "reason"),
    [
        ([[1] * 60], 5, "a prompt of 60 tokens and 5 steps: the decoder takes 64 tokens"),
        (0, 5, "give one prompt or more"),
        ([], 5, "give one prompt or more"),
        ([[1]], 0, "a generation has one step or more"),
        ([[]], 5, "a prompt has one token or more"),
    ],
)
def test_prompts_that_cannot_be(prompts: Any, steps: int, reason: str, export_of: Export) -> None:
    net = decoder()
    net.config = SimpleNamespace(vocab_size=23, max_position_embeddings=64)
    with pytest.raises(InputError, match=reason):
        continuations_of(export_of(net), prompts, steps)


@pytest.fixture
def llama() -> Any:
    importlib.import_module("conformance.cases.models.libraries")  # loads beside a CPU build of torch with it
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "head_dim": 8, "vocab_size": 97, "max_position_embeddings": 64}
    parts = {"num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2}
    tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 23}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **parts, **tokens)).eval()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_generate_of_transformers(llama: Any, dtype: torch.dtype, export_of: Export) -> None:
    """Its end of text, its padding (0 is in a prompt) and its settings play no part."""
    model = llama.to(dtype)
    model.generation_config.repetition_penalty = 9.0
    before = model.generation_config.to_dict()
    continuations, _ = continuations_of(export_of(decoder()), [[5, 0, 23, 8], [1, 2]], 9, model=model)
    assert model.generation_config.to_dict() == before
    exact = model.float() if dtype is torch.bfloat16 else model
    for continuation in continuations:
        full_sequence = torch.cat(
            [torch.from_numpy(continuation.prompt), torch.from_numpy(continuation.tokens)[None]], 1
        )
        with torch.no_grad():
            logits = exact(full_sequence).logits[0, continuation.prompt.shape[1] - 1 : -1].float()
        bound = 2e-3 if dtype is torch.float16 else 1e-5
        torch.testing.assert_close(torch.from_numpy(continuation.logits), logits, atol=bound, rtol=bound)
        if dtype is not torch.float16:
            assert logits.argmax(-1).tolist() == continuation.tokens.tolist()
