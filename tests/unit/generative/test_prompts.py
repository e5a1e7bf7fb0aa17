"""Prompts as a tokenizer gives them: what a decoder's archive leaves out, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

import conformance.cases.models.libraries  # noqa: F401
from t2n_core.errors import InputError
from t2n_core.generative.parts import plan_of

SIZES = {"vocab_size": 61, "num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 8}
TOKENS = torch.arange(1, 15).reshape(2, 7)
ONES, ZEROS, PADDED = torch.ones_like(TOKENS), torch.zeros_like(TOKENS), torch.ones_like(TOKENS)
PADDED[0, :2] = 0


def llama() -> Any:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, intermediate_size=16)).eval()


def gpt2() -> Any:
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=61, n_embd=8, n_layer=1, n_head=2)).eval()


def t5() -> Any:
    sizes = {"d_model": 8, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
    config = transformers.T5Config(vocab_size=61, **sizes)
    return transformers.T5ForConditionalGeneration(config).eval()


@pytest.mark.parametrize(
    "more",
    [
        {"attention_mask": ONES},
        {"token_type_ids": ZEROS},
        {"attention_mask": ONES, "token_type_ids": ZEROS},
        {"position_ids": torch.arange(7).expand(2, 7)},
        {"labels": TOKENS},
    ],
)
def test_what_changes_no_logits_is_left_out(more: dict[str, torch.Tensor]) -> None:
    encoding = transformers.BatchEncoding({"input_ids": TOKENS, **more})
    assert plan_of(llama(), encoding).call.arguments.keys() == plan_of(llama(), TOKENS).call.arguments.keys()


@pytest.mark.parametrize(
    ("make", "more", "message"),
    [
        (llama, {"attention_mask": PADDED}, "`attention_mask` hides tokens, and a decoder's archive takes prompts"),
        (llama, {"position_ids": ONES}, "`position_ids` changes the logits, and a decoder's archive takes tokens"),
        (gpt2, {"token_type_ids": ZEROS}, "`token_type_ids` changes the logits, and a decoder's archive takes tokens"),
        (t5, {"attention_mask": PADDED}, "`attention_mask` hides parts of the encoded input"),
    ],
)
def test_what_changes_the_logits_is_refused(make: Any, more: dict[str, torch.Tensor], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_of(make(), {"input_ids": TOKENS, **more})


def test_a_mask_of_ones_is_no_input_of_an_encoder() -> None:
    plan = plan_of(t5(), {"input_ids": TOKENS, "attention_mask": ONES}, dynamic_axes={"input_ids": {1: "L"}})
    assert plan.encoder is not None
    assert list(plan.encoder.arguments) == ["input_ids"]
