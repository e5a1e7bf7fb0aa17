"""Adapters in PEFT's files are merged: the model computes what its layers with the adapter beside them compute."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import save_file
from torch import nn

from pytest_t2n.cli.command import main
from t2n_core.errors import InputError
from t2n_core.generative.lora import merge_adapter
from tests.contract.generative.test_export_generative import SMALL, enlarged, llama
from tests.releases import NEWEST, on_each_line

IDS = torch.tensor([[5, 17, 3, 8, 44, 2, 9]])
LORA = {"peft_type": "LORA", "lora_alpha": 6, "r": 3, "target_modules": ["q_proj", "down_proj"]}


def gpt2() -> Any:
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=61, n_embd=24, n_layer=2, n_head=4, n_positions=96)
    return enlarged(transformers.GPT2LMHeadModel(config))


def save(folder: Path, tensors: dict[str, torch.Tensor], **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    save_file(
        {f"base_model.model.{name}": tensor for name, tensor in tensors.items()}, folder / "adapter_model.safetensors"
    )
    (folder / "adapter_config.json").write_text(json.dumps({**LORA, **changes}))
    return folder


def pairs(model: nn.Module, *ends: str, rank: int = 3) -> dict[str, torch.Tensor]:
    """Return random pairs of matrices for the layers whose names have these ends."""
    torch.manual_seed(1)
    tensors = {}
    for name, layer in model.named_modules():
        if name.endswith(ends):
            width, height = layer.weight.shape if type(layer).__name__ == "Conv1D" else layer.weight.shape[::-1]
            tensors[f"{name}.lora_A.weight"] = torch.randn(rank, width)
            tensors[f"{name}.lora_B.weight"] = torch.randn(height, rank)
    return tensors


def beside(model: Any, tensors: dict[str, torch.Tensor], factor: float) -> torch.Tensor:
    """Return the logits with the adapter beside the layers: each result has `factor * B A x` added."""
    hooks = []
    for name, layer in model.named_modules():
        if f"{name}.lora_A.weight" in tensors:
            low, high = tensors[f"{name}.lora_A.weight"], tensors[f"{name}.lora_B.weight"]
            hooks.append(
                layer.register_forward_hook(
                    lambda _, args, result, low=low, high=high: result + factor * (args[0] @ low.T @ high.T)
                )
            )
    with torch.no_grad():
        logits: torch.Tensor = model(input_ids=IDS).logits
    for hook in hooks:
        hook.remove()
    return logits


@pytest.mark.parametrize(
    ("make", "ends", "changes", "factor"),
    [
        (partial(llama, 2), ("q_proj", "down_proj"), {}, 2.0),
        (partial(llama, 2), ("v_proj", "lm_head"), {"use_rslora": True}, 6 / math.sqrt(3)),
        (partial(llama, 2), ("layers.1.mlp.up_proj",), {"alpha_pattern": {"layers.1.mlp.up_proj": 12}}, 4.0),
        (gpt2, ("c_attn", "c_proj"), {"fan_in_fan_out": True}, 2.0),
    ],
    ids=["plain", "root", "pattern", "gpt2"],
)
def test_a_merged_model_computes_the_same(
    make: Any, ends: tuple[str, ...], changes: dict[str, Any], factor: float, tmp_path: Path
) -> None:
    model = make()
    tensors = pairs(model, *ends)
    with torch.no_grad():
        plain, expected = model(input_ids=IDS).logits, beside(model, tensors, factor)
    assert merge_adapter(model, save(tmp_path, tensors, **changes)) == len(tensors) // 2
    with torch.no_grad():
        actual = model(input_ids=IDS).logits
    assert (plain - expected).abs().max() > 0.01, "the adapter changes nothing"
    torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-4)


def test_embeddings_and_layers_that_were_trained_whole(tmp_path: Path) -> None:
    model = llama()
    head, table = torch.randn(61, 24), model.model.embed_tokens.weight.detach().clone()
    low, high = torch.randn(3, 61), torch.randn(24, 3)
    tensors = {"model.embed_tokens.lora_embedding_A": low, "model.embed_tokens.lora_embedding_B": high}
    assert merge_adapter(model, save(tmp_path, {**tensors, "lm_head.weight": head})) == 2
    torch.testing.assert_close(model.model.embed_tokens.weight, table + 2 * (high @ low).T)
    assert torch.equal(model.lm_head.weight, head)


def test_the_files_of_the_model_stay_as_they_are(tmp_path: Path) -> None:
    llama().save_pretrained(tmp_path / "in")
    before = (tmp_path / "in" / "model.safetensors").read_bytes()
    model = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "in")
    merge_adapter(model, save(tmp_path / "adapter", pairs(model, "q_proj")))
    assert (tmp_path / "in" / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize("version", on_each_line(NEWEST, since="0.21"))
def test_an_archive_of_a_merged_model(
    version: str, resolved_engine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resolved_engine(version)
    model = llama()
    model.save_pretrained(tmp_path / "in")
    folder = save(tmp_path / "adapter", pairs(model, "q_proj", "down_proj"))
    common = ["--no-tokenizer", "--steps=4", f"--tract={version}", "--adapter", str(folder)]
    assert main(["export-llm", str(tmp_path / "in"), "-o", str(tmp_path / "out"), *common]) == 0
    stdout = capsys.readouterr().out
    assert "weights changed by the adapter: 2" in stdout
    assert "tokens 12/12" in stdout


@pytest.mark.parametrize(
    ("tensors", "changes", "message"),
    [
        (
            {"model.layers.7.mlp.up_proj.lora_A.weight": torch.ones(3, 24)},
            {},
            "has no layer model.layers.7.mlp.up_proj",
        ),
        ({"model.layers.0.mlp.up_proj.lora_A.weight": torch.ones(3, 24)}, {}, "up_proj.lora_B.weight is missing"),
        (
            {"model.norm.other": torch.ones(3)},
            {},
            "has base_model.model.model.norm.other, which the model has no place",
        ),
        ({"model.norm.weight": torch.ones(24)}, {"peft_type": "IA3"}, "is IA3, and plain LORA is merged"),
        ({"model.norm.weight": torch.ones(24)}, {"use_dora": True}, "is LORA, use_dora, and plain LORA is merged"),
    ],
    ids=["layer", "half", "place", "kind", "dora"],
)
def test_what_does_not_fit_is_refused(
    tensors: dict[str, torch.Tensor], changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        merge_adapter(llama(), save(tmp_path, tensors, **changes))


def test_a_shared_weight_is_refused(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model: Any = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, tie_word_embeddings=True)).eval()
    with pytest.raises(InputError, match=r"changes lm_head.weight, which the model shares with model.embed_tokens"):
        merge_adapter(model, save(tmp_path, pairs(model, "lm_head")))
    with pytest.raises(InputError, match="holds no adapter"):
        merge_adapter(model, tmp_path / "none")
