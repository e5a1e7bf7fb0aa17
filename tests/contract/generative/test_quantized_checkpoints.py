"""Quantized checkpoints become archives: their weights are read exactly, and the tokens are those of the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from pytest_t2n.cli.command import main
from t2n_core.errors import InputError
from t2n_core.generative.load import load_model
from tests.contract.generative.test_export_generative import SMALL, enlarged, llama
from tests.releases import NEWEST
from tests.unit.generative.test_quantized_formats import packed

Tensors = dict[str, torch.Tensor]


def fp8(name: str, weight: torch.Tensor) -> tuple[Tensors, torch.Tensor]:
    """Return the tensors of a weight in blocks of 8 by 8, and its elements."""
    small = (weight / 4).to(torch.float8_e4m3fn)
    factors = torch.rand(-(-weight.shape[0] // 8), -(-weight.shape[1] // 8)) + 3.5
    rows, columns = (torch.arange(size) // 8 for size in weight.shape)
    return {name: small, f"{name}_scale_inv": factors}, small.float() * factors[rows][:, columns]


def gptq(name: str, weight: torch.Tensor) -> tuple[Tensors, torch.Tensor]:
    """Return the tensors of a weight in groups of 8 inputs, and its elements."""
    groups = torch.arange(weight.shape[1]) // 8
    scales = torch.stack([weight[:, groups == group].abs().amax(1) / 7 for group in groups.unique()]).half()
    codes = (weight.T / scales[groups].float()).round().clamp(-8, 7) + 8
    zeros = torch.full(scales.shape, 7)
    stem = name.removesuffix(".weight")
    parts = {"qweight": packed(codes.numpy(), 4, 0), "qzeros": packed(zeros.numpy(), 4, 1), "scales": scales}
    parts["g_idx"] = groups.to(torch.int32)
    return {f"{stem}.{end}": part for end, part in parts.items()}, ((codes - 8) * scales[groups].float()).T


def eight_bits(name: str, weight: torch.Tensor) -> tuple[Tensors, torch.Tensor]:
    """Return the tensors of a weight with a factor for each row, and its elements."""
    largest = weight.abs().amax(1)
    codes = (weight / largest[:, None] * 127).round()
    stem = name.removesuffix(".weight")
    return {name: codes.to(torch.int8), f"{stem}.SCB": largest}, codes * (largest / 127)[:, None]


SETTINGS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "fp8": (fp8, {"quant_method": "fp8", "weight_block_size": [8, 8], "activation_scheme": "dynamic"}),
    "gptq": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": 8, "checkpoint_format": "gptq"}),
    "bitsandbytes": (eight_bits, {"quant_method": "bitsandbytes", "load_in_8bit": True}),
}
QUANTIZED = tuple(f"{layer}_proj.weight" for layer in ("q", "o", "gate", "up", "down"))
"""The ends of the names of layers whose sizes are multiples of 8."""


def quantized(folder: Path, method: str) -> Any:
    """Write a small Llama with quantized layers, and return the model with the elements that they stand for."""
    model, (quantize, settings) = llama(), SETTINGS[method]
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    torch.manual_seed(0)
    for name in [name for name in tensors if name.endswith(QUANTIZED)]:
        parts, elements = quantize(name, tensors.pop(name))
        tensors.update(parts)
        model.get_parameter(name).data.copy_(elements)
    write(folder, tensors, settings)
    return model


def write(folder: Path, tensors: Tensors, settings: dict[str, Any]) -> None:
    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors", {"format": "pt"}
    )
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": settings}))


@pytest.mark.parametrize("method", list(SETTINGS))
def test_weights_are_those_of_the_checkpoint(method: str, tmp_path: Path) -> None:
    expected, actual = quantized(tmp_path / "in", method), load_model(tmp_path / "in")
    assert actual.dtype == torch.float32
    for name, weight in expected.state_dict().items():
        torch.testing.assert_close(actual.state_dict()[name], weight, atol=0, rtol=1e-6, msg=name)
    assert load_model(tmp_path / "in", dtype="f16").dtype == torch.float16


@pytest.mark.parametrize(("method", "version"), [("fp8", "0.21.19"), ("gptq", "0.22.4"), ("bitsandbytes", NEWEST)])
def test_tokens_are_those_of_the_checkpoint(
    method: str, version: str, resolved_engine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resolved_engine(version)
    quantized(tmp_path / "in", method)
    common = [str(tmp_path / "in"), "--no-tokenizer", "--steps=6", f"--tract={version}"]
    assert main(["export-llm", *common, "-o", str(tmp_path / "out")]) == 0
    stdout = capsys.readouterr().out
    assert f"read from {method}, exactly" in stdout
    assert "tokens 18/18" in stdout
    assert main(["export-llm", *common, "-o", str(tmp_path / "half"), "--dtype=f16"]) == 0
    assert "the weights, against float32: perplexity" in capsys.readouterr().out


def test_experts_of_gpt_oss_in_mxfp4(tmp_path: Path) -> None:
    """The checkpoint's experts are transposed, as transformers' own reader has them."""
    config = transformers.GptOssConfig(**{**SMALL, "hidden_size": 32, "intermediate_size": 64}, head_dim=8,
                                       num_local_experts=3, num_experts_per_tok=2)  # fmt: skip
    torch.manual_seed(0)
    model: Any = enlarged(transformers.GptOssForCausalLM(config))
    model.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    expected = {}
    for name in [name for name in tensors if name.endswith(("gate_up_proj", "down_proj"))]:
        experts, inner, outer = tensors.pop(name).shape
        blocks = torch.randint(0, 256, (experts, outer, inner // 32, 16), dtype=torch.uint8)
        scales = torch.randint(120, 126, (experts, outer, inner // 32), dtype=torch.uint8)
        tensors |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
        expected[name] = transformers.integrations.mxfp4.convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    assert len(expected) == 2
    write(tmp_path, tensors, {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]})
    actual = load_model(tmp_path).state_dict()
    for name, elements in expected.items():
        assert torch.equal(actual[name], elements), name
    assert actual.keys() == model.state_dict().keys()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"quant_method": "eetq"}, "quantized by eetq, which transformers loads on a GPU only"),
        ({"quant_method": "hqq"}, "quantized by hqq, which is not read here"),
        ({"quant_method": "fp8"}, "holds no weight in the format fp8"),
    ],
)
def test_other_formats_are_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    llama().save_pretrained(tmp_path)
    write(tmp_path, load_file(tmp_path / "model.safetensors"), settings)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


def test_a_weight_without_its_factors_is_refused(tmp_path: Path) -> None:
    quantized(tmp_path, "gptq")
    tensors = load_file(tmp_path / "model.safetensors")
    settings = SETTINGS["gptq"][1]
    write(
        tmp_path,
        {name: tensor for name, tensor in tensors.items() if not name.endswith("0.mlp.up_proj.scales")},
        settings,
    )
    with pytest.raises(InputError, match=r"layers.0.mlp.up_proj cannot be read as gptq: KeyError: '.scales'"):
        load_model(tmp_path)
