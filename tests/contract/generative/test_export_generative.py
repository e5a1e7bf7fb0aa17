"""Models of transformers as folders of archives: what is written, what it generates, and what is refused."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from t2n_core import KhronosNNEF, TractNNEF
from t2n_core.errors import InputError, ParityError
from t2n_core.generative import GenerativeResult, export_generative
from tests.releases import NEWEST

TARGET = TractNNEF(NEWEST)
SMALL: dict[str, Any] = {
    "vocab_size": 61, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 1, "num_attention_heads": 6,
    "num_key_value_heads": 3, "max_position_embeddings": 96, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


def enlarged(model: nn.Module) -> Any:
    """Return the model with weights whose tokens differ from step to step."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3)
    return model.eval()


def llama(layers: int = 1) -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**{**SMALL, "num_hidden_layers": layers})
    return enlarged(transformers.LlamaForCausalLM(config))


def windowed() -> Any:
    torch.manual_seed(0)
    config = transformers.Gemma3TextConfig(**{**SMALL, "num_hidden_layers": 2}, head_dim=4, sliding_window=5)
    return enlarged(transformers.Gemma3ForCausalLM(config))


def recurrent() -> Any:
    torch.manual_seed(0)
    config = transformers.MambaConfig(vocab_size=61, hidden_size=24, num_hidden_layers=1, state_size=6)
    return enlarged(transformers.MambaForCausalLM(config))


def with_encoder() -> Any:
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=61, d_model=24, d_kv=6, d_ff=40, num_layers=1, num_heads=4, decoder_start_token_id=0
    )
    return enlarged(transformers.T5ForConditionalGeneration(config))


@pytest.mark.proofs
def test_a_decoder_is_one_archive_for_prompts_and_steps(tmp_path: Path) -> None:
    result = export_generative(llama(layers=2), None, TARGET, tmp_path / "llama", batch="B")
    assert str(result.decoder.range) == "B >= 1, P >= 0, S >= 1, P + S <= 96"
    assert result.decoder.input_names[:3] == ["input_ids", "in_cache_key_0", "in_cache_value_0"]
    assert result.decoder.output_names[:3] == ["outputs", "out_cache_key_0", "out_cache_value_0"]
    generation = result.assert_generation(steps=24)
    assert generation.tokens == "72/72"
    assert {check.name for check in generation.further if check.text == "pass"} == {
        "prompt in chunks",
        "prompt token by token",
        "prompts in a batch",
        "back to an earlier state",
        "state held by the engine",
    }
    assert not list(tmp_path.glob(".*")), "scratch is left"


def test_the_mask_that_a_tokenizer_returns(tmp_path: Path) -> None:
    """Ones hide nothing, so that the archive has no such input; padding is refused."""
    tokens = torch.randint(1, 60, (2, 7))
    prompt = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    result = export_generative(llama(), prompt, TARGET, tmp_path / "llama", batch="B")
    assert result.decoder.input_names == ["input_ids", "in_cache_key_0", "in_cache_value_0"]
    assert result.assert_generation(steps=4).tokens == "12/12"
    prompt["attention_mask"][0, :2] = 0
    with pytest.raises(InputError, match="`attention_mask` hides tokens"):
        export_generative(llama(), prompt, TARGET, tmp_path / "padded")


def test_an_archive_for_single_tokens(tmp_path: Path) -> None:
    """It takes the caches that the decoder gives, and its own tokens are checked."""
    result = export_generative(llama(), None, TARGET, tmp_path / "llama", step_archive=True)
    assert result.step is not None
    assert list(result.parts) == ["decoder", "step"]
    assert str(result.step.range) == "0 <= P <= 95"
    assert result.step.input_names == result.decoder.input_names
    assert result.step.output_names == result.decoder.output_names
    generation = result.assert_generation(steps=8)
    assert generation.tokens == "24/24"
    manifest = json.loads((tmp_path / "llama" / "manifest.json").read_text())
    assert manifest["parts"]["step"]["archive"] == "step.nnef.tgz"

    torch.manual_seed(1)
    other = enlarged(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)))
    unchecked = TractNNEF(NEWEST, check_io=False)
    wrong = export_generative(other, None, unchecked, tmp_path / "other", step_archive=True)
    assert wrong.step is not None
    result.step.archive = wrong.step.archive
    with pytest.raises(ParityError):
        result.assert_generation(steps=8)


@pytest.mark.parametrize("make", [partial(llama, 2), windowed], ids=["llama", "windowed"])
def test_archives_have_the_form_that_tracts_runner_takes(make: Any, tmp_path: Path) -> None:
    """`causal_llm` of tract: tokens, then caches, each with one free axis that the tokens lack; logits, then caches."""
    graph = export_generative(make(), None, TractNNEF(NEWEST, check_io=False), tmp_path / "out").decoder.graph
    tokens, *caches = graph.inputs
    logits, *following = graph.outputs
    assert (str(tokens.dtype), str(tokens.shape)) == ("int64", "(1, S)")
    assert (str(logits.dtype), str(logits.shape)) == ("float32", "(1, S, 61)")
    assert len(caches) == len(following) == 4
    for before, after in zip(caches, following, strict=True):
        free = [axis for axis, extent in enumerate(before.shape) if not isinstance(extent, int)]
        assert [str(before.shape[axis]) for axis in free] == ["P"]
        assert [str(after.shape[axis]) for axis in free] == ["P + S"]
        assert after.name == before.name.replace("in_", "out_", 1)


def test_what_lies_beside_the_archive_is_enough_to_run_it(tmp_path: Path) -> None:
    class Tokenizer:
        def save_pretrained(self, folder: Path) -> None:
            folder.mkdir()
            (folder / "tokenizer.json").write_text("{}")

    model = llama()
    export_generative(model, None, TractNNEF(NEWEST, check_io=False), tmp_path / "llama", tokenizer=Tokenizer())
    folder = tmp_path / "llama"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["model_type"] == "llama"
    assert manifest["tokens_per_step"] == "any"
    assert manifest["scenarios"] == {"tg": "S == 1", "pp": "P == 0"}
    assert [pair["input"] for pair in manifest["state"]][:2] == ["in_cache_key_0", "in_cache_value_0"]
    assert json.loads((folder / "config.json").read_text())["vocab_size"] == 61
    assert (folder / "tokenizer" / "tokenizer.json").exists()
    engine = TARGET.engine()
    shapes = {}
    for file in sorted((folder / "tests").iterdir()):
        arrays = np.load(file)
        names = manifest["parts"]["decoder"]["inputs"]
        reply = engine.run(folder / manifest["parts"]["decoder"]["archive"], [[arrays[name] for name in names]])
        expected = [arrays[name] for name in manifest["parts"]["decoder"]["outputs"]]
        for got, reference in zip(reply.outputs[0], expected, strict=True):
            np.testing.assert_allclose(got, reference, atol=1e-4)
        shapes[file.stem] = (arrays["in_cache_key_0"].shape[2], arrays["input_ids"].shape[1])
    assert shapes == {"prompt_io": (0, 50), "prompt_with_past_io": (25, 25), "text_generation_io": (50, 1)}


def test_tokens_past_a_sliding_window_are_right(tmp_path: Path) -> None:
    result = export_generative(windowed(), None, TARGET, tmp_path / "gemma")
    generation = result.assert_generation(prompts=[list(range(1, 10))], steps=20)
    assert generation.tokens == "20/20"
    assert not generation.notes


def with_long_positions() -> Any:
    torch.manual_seed(0)
    factors = {"short_factor": [1.0, 1.2], "long_factor": [2.0, 9.0], "original_max_position_embeddings": 48}
    rope = {"rope_type": "longrope", "rope_theta": 10000.0, "factor": 2.0, "partial_rotary_factor": 1.0, **factors}
    config = transformers.Phi3Config(**SMALL, rope_parameters=rope, original_max_position_embeddings=48)
    return enlarged(transformers.Phi3ForCausalLM(config))


def test_long_positions_are_those_before_the_cache_is_computed_again(tmp_path: Path) -> None:
    result = export_generative(with_long_positions(), None, TARGET, tmp_path / "net")
    assert str(result.decoder.range) == "P >= 0, S >= 1, P + S <= 48"
    assert any("by the short factors, for 48 tokens" in note for note in result.decoder.notes)


@pytest.mark.parametrize(
    ("positions", "sizes"), [(40, "P + S <= 40"), (64, "P + S <= 64, P + S >= 49")], ids=["short", "long"]
)
def test_declared_positions_choose_the_factors(positions: int, sizes: str, tmp_path: Path) -> None:
    result = export_generative(with_long_positions(), None, TARGET, tmp_path / "net", positions=positions, steps=8)
    assert str(result.decoder.range) == f"P >= 0, S >= 1, {sizes}"
    assert result.proof is not None
    assert result.proof.tokens == "24/24"


def test_dynamic_positions_hold_up_to_those_without_scaling(tmp_path: Path) -> None:
    torch.manual_seed(0)
    rope = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
    model = enlarged(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, rope_parameters=rope)))
    result = export_generative(model, None, TARGET, tmp_path / "net", steps=8)
    assert str(result.decoder.range) == "0 <= P <= 95"
    assert result.proof is not None
    assert result.proof.tokens == "24/24"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positions": 97}, "this model has 96"),
        ({"positions": 60}, "a prompt of 55 tokens and 16 steps: the decoder takes 60 tokens"),
        ({"positions": 64, "step_archive": True}, "takes its prompt in one step"),
    ],
)
def test_positions_that_no_decoder_has_are_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        export_generative(with_long_positions(), None, TARGET, tmp_path / "net", **options)
    assert not (tmp_path / "net").exists()


def test_a_recurrent_model_takes_one_token_a_step(tmp_path: Path) -> None:
    result = export_generative(recurrent(), None, TARGET, tmp_path / "mamba")
    assert result.decoder.graph.inputs[0].shape == (1, 1)
    assert not any(pair.initial.any() for pair in result.state)
    assert result.assert_generation(steps=12).tokens == "36/36"


@pytest.mark.proofs
def test_an_encoder_gives_what_all_steps_look_at(tmp_path: Path) -> None:
    example = {"input_ids": torch.randint(1, 61, (1, 7))}
    axes = {"input_ids": {1: "L"}}
    result = export_generative(with_encoder(), example, TARGET, tmp_path / "t5", dynamic_axes=axes)
    assert list(result.parts) == ["encoder", "decoder"]
    assert result.encoder is not None
    assert set(result.encoder.output_names) <= set(result.decoder.input_names)
    assert not any("cross" in name for name in result.decoder.output_names)
    assert str(result.decoder.range) == "E >= 1, P >= 0, S >= 1"
    assert result.assert_generation(steps=12).tokens == "36/36"


@pytest.mark.parametrize("make", [llama, recurrent])
def test_weights_in_float32_lose_nothing(make: Any, tmp_path: Path) -> None:
    """Also one token a step; and what is lost is seen, against another model."""
    model = make()
    result = export_generative(model, None, TractNNEF(NEWEST, check_io=False), tmp_path / "out")
    measurement = result.measure_loss()
    assert measurement.agreement == 1
    assert abs(measurement.divergence) < 1e-6
    assert measurement.perplexity == pytest.approx(measurement.reference, rel=1e-4)
    with torch.no_grad():
        text = torch.tensor([[4, 9, 30, 2, 17, 5]])
        loss = model(input_ids=text, labels=text).loss.item()
    text_measurement = result.measure_loss(text=text[0].tolist())
    assert text_measurement.reference == pytest.approx(math.exp(loss), rel=1e-4), "transformers' own loss"
    assert text_measurement.tokens == 6
    torch.manual_seed(7)
    other = enlarged(type(model)(model.config))
    lost = result.measure_loss(other)
    assert lost.divergence > 0.05
    assert lost.agreement < 0.5
    config = type(model.config)(**{**model.config.to_dict(), "vocab_size": 67})
    with pytest.raises(InputError, match="returns 67 logits, and the archive 61"):
        result.measure_loss(type(model)(config).eval(), text[0])


def test_an_encoders_model_loses_nothing_either(tmp_path: Path) -> None:
    example = {"input_ids": torch.randint(1, 61, (1, 7))}
    model, target = with_encoder(), TractNNEF(NEWEST, check_io=False)
    float32 = export_generative(model, example, target, tmp_path / "whole").measure_loss()
    assert (float32.tokens, float32.agreement) == (128, 1)
    float16 = export_generative(with_encoder().half(), example, target, tmp_path / "half").measure_loss(model)
    assert float16.reference == float32.reference
    assert float32.divergence < 1e-6 < float16.divergence < 1e-2


def test_the_model_stays_as_it_is(tmp_path: Path) -> None:
    model = llama()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    attributes = set(vars(model))
    export_generative(model, torch.randint(1, 61, (1, 6)), TractNNEF(NEWEST, check_io=False), tmp_path / "llama")
    assert set(vars(model)) == attributes
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_an_archive_of_another_model_is_not_right(tmp_path: Path) -> None:
    """The proof sees a cache that is dropped, and weights that are another model's."""
    first = export_generative(llama(), None, TractNNEF(NEWEST, check_io=False), tmp_path / "one")
    torch.manual_seed(5)
    other = enlarged(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)))
    mixed = GenerativeResult(first.directory, other, first.plan, first.decoder)
    with pytest.raises(ParityError, match="tokens are right"):
        mixed.assert_generation(steps=4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"example": torch.ones(1, 3, dtype=torch.int64)}, "the prompt has 3 tokens, an example needs 5"),
        ({"example": [1, 2, 3]}, "the example is a list"),
        ({"example": {"inputs_embeds": torch.ones(1, 6, 24)}}, "has no input_ids of shape"),
        ({"target": KhronosNNEF()}, "only tract has dynamic sizes"),
        ({"dynamic_axes": {"input_ids": {1: "S"}}}, "this model has none"),
        ({"target": TractNNEF("0.21.19", check_io=False), "kv": "engine"}, "0.21.19 cannot hold a cache"),
        ({"model": nn.Linear(3, 4).eval(), "example": torch.ones(1, 8, dtype=torch.int64)}, "takes no cache"),
        ({"model": nn.Linear(3, 4).eval()}, "has no config to draw an example from"),
        ({"model": nn.Linear(3, 4), "training": "refuse"}, "the model is in training mode"),
    ],
)
def test_what_cannot_be_exported_is_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"model": llama(), "example": None, "target": TARGET, **change}
    model, example, target = (arguments.pop(name) for name in ("model", "example", "target"))
    with pytest.raises(InputError, match=message):
        export_generative(model, example, target, tmp_path / "out", **arguments)
    assert not list(tmp_path.iterdir())


def test_a_model_in_training_mode_is_exported_in_evaluation_mode(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model: Any = enlarged(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, attention_dropout=0.5)))
    before = export_generative(model, None, TARGET, tmp_path / "evaluation", steps=4)
    result = export_generative(model.train(), None, TARGET, tmp_path / "training", steps=4)
    assert all(part.training for part in model.modules())
    archive = "decoder.nnef.tgz"
    assert (tmp_path / "training" / archive).read_bytes() == (tmp_path / "evaluation" / archive).read_bytes()
    assert "LlamaForCausalLM is in training mode" in result.decoder.notes[0]
    assert not any("training mode" in note for note in before.decoder.notes)
    assert result.check_generation(steps=4).passed


def test_what_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise ParityError("wrong tokens")

    monkeypatch.setattr(GenerativeResult, "assert_generation", fail)
    with pytest.raises(ParityError):
        export_generative(llama(), None, TARGET, tmp_path / "out")
    assert not list(tmp_path.iterdir())
