"""`t2n export-llm`: folders of language models in the shell."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from pytest_t2n.cli.command import main
from tests.contract.generative.test_export_generative import SMALL, llama


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small Llama, without a tokenizer."""
    folder = tmp_path_factory.mktemp("llama")
    llama().save_pretrained(folder)
    return folder


def t2n(*arguments: Any) -> int:
    return main(["export-llm", *map(str, arguments), "--tract=0.23.9", "--steps=8"])


def test_a_folder_becomes_a_folder(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert t2n(folder, "-o", tmp_path / "out", "--no-tokenizer", "--kv=engine") == 0
    said = capsys.readouterr().out
    assert "holds for P >= 0, S >= 1, P + S <= 96" in said
    assert "tokens 24/24" in said
    assert "state held by the engine: pass" in said
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["kv"], manifest["transforms"]) == ("engine", ["detect_kv_cache"])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model `in` of rows that can be quantized, and its archives in float32 in `whole`."""
    folder = tmp_path_factory.mktemp("whole")
    config = transformers.LlamaConfig(**{**SMALL, "hidden_size": 96, "intermediate_size": 64})
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(folder / "in")
    assert t2n(folder / "in", "-o", folder / "whole", "--no-tokenizer", "--no-check") == 0
    return folder


@pytest.mark.parametrize(
    "more",
    [("--dtype=f16",), ("--weights=float16",), ("--weights=q4_0",), ("--weights=lm_head=float16,*=int8",)],
    ids=["float16", "stored", "q4_0", "int8"],
)
def test_small_weights_are_proven_with_themselves(
    more: tuple[str, ...], whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = tmp_path / "small"
    assert t2n(whole / "in", "-o", small, "--no-tokenizer", *more) == 0
    said = capsys.readouterr().out
    assert "tokens 24/24" in said
    assert "the weights, against float32: perplexity" in said
    loss = json.loads((small / "manifest.json").read_text())["loss"]
    assert loss["tokens"] == 96
    agreement, divergence = (0.5, 0.1) if "q4_0" in more[0] else (0.9, 1e-3) if "int8" in more[0] else (0.99, 1e-5)
    assert abs(loss["perplexity"] / loss["reference"] - 1) < 0.1
    assert agreement < loss["agreement"] <= 1
    assert 0 < loss["divergence"] < divergence
    sizes = [(one / "decoder.nnef.tgz").stat().st_size for one in (whole / "whole", small)]
    assert sizes[1] < 0.6 * sizes[0]


def test_the_loss_is_that_on_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = transformers.LlamaConfig(**{**SMALL, "vocab_size": 256})
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "in")
    alphabet = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(tmp_path / "in")
    (tmp_path / "text.txt").write_text("What is measured here?")
    more = ("--dtype=f16", f"--text={tmp_path / 'text.txt'}")
    assert t2n(tmp_path / "in", "-o", tmp_path / "out", *more) == 0
    assert "(22 tokens)" in capsys.readouterr().out
    (tmp_path / "text.txt").write_text("too long " * 20)
    assert t2n(tmp_path / "in", "-o", tmp_path / "more", *more) == 1
    assert "the text has 180 tokens: it needs 2 to 96 tokens" in capsys.readouterr().err
    assert not (tmp_path / "more").exists()


def test_a_name_in_the_cache_of_the_hub(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached = tmp_path / "hub" / "models--owner--llama"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text("0a1b")
    shutil.copytree(folder, cached / "snapshots" / "0a1b")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert t2n("owner/llama", "-o", tmp_path / "out", "--no-tokenizer", "--no-check", "--last-logits=2") == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["model_type"], manifest["logits"]) == ("llama", "of the last 2")


def test_weights_are_drawn_on_request(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "config.json").write_text((folder / "config.json").read_text())
    assert t2n(tmp_path / "in", "-o", tmp_path / "out", "--no-tokenizer", "--random", "--no-check") == 0
    assert (tmp_path / "out" / "decoder.nnef.tgz").exists()


@pytest.mark.parametrize(
    ("make", "more", "message"),
    [
        (None, (), "there is no folder"),
        ({}, (), "holds no config.json"),
        ({"config.json": '{"model_type": "llama"}'}, (), "holds no weights"),
        ({"config.json": '{"model_type": "no-such"}', "model.safetensors": ""}, (), "transformers cannot read"),
        (
            {"config.json": '{"model_type": "vit"}', "model.safetensors": ""},
            (),
            "vit is not an architecture that generates",
        ),
        (
            {"config.json": '{"model_type": "llama"}', "model.safetensors": "no"},
            (),
            "transformers cannot load the model",
        ),
    ],
)
def test_what_is_no_model_is_refused(
    make: dict[str, str] | None, more: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    if make is not None:
        folder.mkdir()
        for name, text in make.items():
            (folder / name).write_text(text)
    assert t2n(folder, "-o", tmp_path / "out", "--no-tokenizer", *more) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_missing_tokenizer_is_told(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert t2n(folder, "-o", tmp_path / "out") == 1
    assert "holds no tokenizer" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
