"""`t2n export-llm`: folders of language models in the shell."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from pytest_t2n.cli.command import main
from t2n_core.generative import load
from tests.contract.generative.test_export_generative import SMALL, llama
from tests.releases import NEWEST


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small Llama, without a tokenizer."""
    folder = tmp_path_factory.mktemp("llama")
    llama().save_pretrained(folder)
    return folder


def t2n(*arguments: Any) -> int:
    return main(["export-llm", *map(str, arguments), f"--tract={NEWEST}", "--steps=8"])


def test_a_folder_becomes_a_folder(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert t2n(folder, "-o", tmp_path / "out", "--no-tokenizer", "--kv=engine") == 0
    stdout = capsys.readouterr().out
    assert "holds for P >= 0, S >= 1, P + S <= 96" in stdout
    assert "tokens 24/24" in stdout
    assert "state held by the engine: pass" in stdout
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
    stdout = capsys.readouterr().out
    assert "tokens 24/24" in stdout
    assert "the weights, against float32: perplexity" in stdout
    loss = json.loads((small / "manifest.json").read_text())["loss"]
    assert loss["tokens"] == 96
    agreement, divergence = (0.5, 0.1) if "q4_0" in more[0] else (0.9, 1e-3) if "int8" in more[0] else (0.99, 1e-5)
    assert abs(loss["perplexity"] / loss["reference"] - 1) < 0.1
    assert agreement < loss["agreement"] <= 1
    assert 0 < loss["divergence"] < divergence
    sizes = [(directory / "decoder.nnef.tgz").stat().st_size for directory in (whole / "whole", small)]
    assert sizes[1] < 0.6 * sizes[0]


@pytest.fixture(scope="module")
def with_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model of 96 positions in `in`, whose tokens are bytes, and a text of 180 tokens."""
    folder = tmp_path_factory.mktemp("bytes")
    config = transformers.LlamaConfig(**{**SMALL, "vocab_size": 256, "hidden_size": 96, "intermediate_size": 64})
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(folder / "in")
    alphabet = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder / "in")
    (folder / "text.txt").write_text("too long " * 20)
    return folder


def test_the_loss_is_that_on_a_text(with_tokenizer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A text that is longer than the model's context is measured in windows, as transformers measures each of them."""
    model = with_tokenizer / "in"
    more = ("--weights=int8", f"--text={with_tokenizer / 'text.txt'}")
    assert t2n(model, "-o", tmp_path / "out", "--no-tokenizer", *more) == 0
    assert "(180 tokens in 2 windows)" in capsys.readouterr().out
    assert not (tmp_path / "out" / "tokenizer").exists()
    loss = json.loads((tmp_path / "out" / "manifest.json").read_text())["loss"]
    net = transformers.AutoModelForCausalLM.from_pretrained(model)
    ids = torch.tensor(load.tokens_of(with_tokenizer / "text.txt", load.load_tokenizer(model)))
    with torch.no_grad():
        sums = [
            (len(part) - 1) * net(input_ids=part[None], labels=part[None]).loss.item() for part in (ids[:96], ids[96:])
        ]
    assert loss["reference"] == pytest.approx(math.exp(sum(sums) / 178), rel=1e-5), "transformers' own loss"
    assert t2n(model, "-o", tmp_path / "bound", *more, "--max-loss=0.5") == 0
    capsys.readouterr()
    assert t2n(model, "-o", tmp_path / "more", *more, "--max-loss=-0.5") == 1
    assert "error: the weights lose more than -50 % of perplexity: perplexity" in capsys.readouterr().err
    assert not (tmp_path / "more").exists()


@pytest.mark.parametrize(
    ("folder_of", "text", "more", "message"),
    [
        ("with_tokenizer", "a", (), "the text has 1 token: a perplexity needs two or more"),
        ("folder", "any text", ("--no-tokenizer",), "holds no tokenizer"),
        ("with_tokenizer", "any text", ("--no-check",), "--no-check measures no loss"),
    ],
)
def test_a_text_that_cannot_be_measured_is_refused_before_the_model_is_loaded(
    folder_of: str,
    text: str,
    more: tuple[str, ...],
    message: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fixture_path: Path = request.getfixturevalue(folder_of)
    monkeypatch.setattr(load, "load_model", lambda *_, **__: pytest.fail("the model was loaded"))
    (tmp_path / "text.txt").write_text(text)
    in_folder = fixture_path / "in" if folder_of == "with_tokenizer" else fixture_path
    assert t2n(in_folder, "-o", tmp_path / "out", f"--text={tmp_path / 'text.txt'}", *more) == 1
    assert message in capsys.readouterr().err


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


def test_a_loss_is_a_share(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["export-llm", "net", "--max-loss", "5"])
    assert "'5' is not a share below 1: 0.05 is 5 %" in capsys.readouterr().err
