"""Linear attention by the gated delta rule: prompts at once where the engine computes a sequence in one operation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from t2n_core import TractNNEF
from t2n_core.errors import InputError
from t2n_core.generative import GenerativeExport, export_generative
from t2n_core.rewriter.builtin.delta_rule import OPERATOR
from tests.contract.generative.test_export_generative import enlarged
from tests.releases import NEWEST

CHECKED = TractNNEF(NEWEST)
UNCHECKED = TractNNEF(NEWEST, check_io=False)
OLDER = TractNNEF("0.22.4", check_io=False)
SMALL = {
    "vocab_size": 61, "hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 160, "linear_num_value_heads": 4,
    "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8, "mlp_only_layers": [0, 1],
    "layer_types": ["linear_attention", "full_attention"],
}  # fmt: skip


def hybrid(**more: Any) -> Any:
    torch.manual_seed(0)
    return enlarged(transformers.Qwen3NextForCausalLM(transformers.Qwen3NextConfig(**{**SMALL, **more})))


def has_operator(result: Any) -> bool:
    return OPERATOR in {operation.name for operation in result.decoder.graph.operations}


@pytest.mark.proofs
def test_a_prompt_goes_in_at_once(tmp_path: Path) -> None:
    """Prompts longer than a chunk of the library's, from nothing and from a state, and as a batch."""
    result = export_generative(hybrid(), None, CHECKED, tmp_path / "out", batch="B")
    assert has_operator(result)
    assert str(result.decoder.range) == "B >= 1, P >= 0, S >= 1, P + S <= 160"
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["tokens_per_step"] == "any"
    drawn = torch.Generator().manual_seed(3)
    lengths = (1, 2, 3, 7, 64, 64, 65, 130)
    prompts = [torch.randint(1, 61, (length,), generator=drawn).tolist() for length in lengths]
    generation = result.assert_generation(prompts=prompts, steps=8)
    assert generation.tokens == f"{8 * len(lengths)}/{8 * len(lengths)}"
    assert {check.name for check in generation.further if check.text == "pass"} == {
        "prompt in chunks",
        "prompt token by token",
        "prompts in a batch",
        "back to an earlier state",
    }


def test_an_older_release_takes_one_token_a_step(tmp_path: Path) -> None:
    """By the same export as a newer one."""
    export = GenerativeExport(hybrid())
    for index, (target, count) in enumerate([(UNCHECKED, "S"), (OLDER, 1)]):
        result = export.to(target, tmp_path / str(index))
        assert str(result.decoder.graph.inputs[0].shape[1]) == str(count)
        assert has_operator(result) == (count == "S")
        assert not result.decoder.notes


@pytest.mark.nightly  # the first attempt unrolls the chunks of the library's own form
def test_keys_of_another_width_take_one_token_a_step(tmp_path: Path) -> None:
    result = export_generative(hybrid(linear_key_head_dim=4), None, CHECKED, tmp_path / "out", steps=4)
    assert not has_operator(result)
    assert result.decoder.graph.inputs[0].shape[1] == 1
    (note,) = result.decoder.notes
    assert "a step has one token: several are refused" in note
    assert result.proof is not None
    assert result.proof.tokens == "12/12"


def test_weights_of_float16(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = transformers.Qwen3NextForCausalLM(transformers.Qwen3NextConfig(**SMALL)).eval().half()
    result = export_generative(model, None, CHECKED, tmp_path / "out", steps=8)
    assert has_operator(result)
    assert result.proof is not None


def test_logits_of_positions_need_several_tokens(tmp_path: Path) -> None:
    export = GenerativeExport(hybrid(), last_logits="input")
    assert export.to(CHECKED, tmp_path / "new", steps=4).decoder.input_names[-1] == "logits_to_keep"
    with pytest.raises(InputError, match="Qwen3NextForCausalLM takes one token a step"):
        export.to(OLDER, tmp_path / "old")


def test_layers_with_another_recurrence_take_one_token_a_step() -> None:
    config = transformers.MambaConfig(vocab_size=61, hidden_size=24, num_hidden_layers=2, state_size=6)
    assert not GenerativeExport(transformers.MambaForCausalLM(config).eval()).plan.call.takes_many
