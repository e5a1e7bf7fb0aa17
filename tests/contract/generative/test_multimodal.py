"""Language models with images or sounds: tokens of a program of several archives are those of `generate`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from conformance.cases.generative.case import TEXT
from conformance.cases.several_archives.multimodal import CASES
from t2n_core import TractNNEF
from t2n_core.errors import InputError
from t2n_core.generative.multimodal import multimodal_program
from t2n_core.program import export_program
from tests.releases import NEWEST


def test_a_model_with_images_generates_its_tokens(tmp_path: Path) -> None:
    torch.manual_seed(2)
    program = CASES["llava"]()
    result = export_program(program, TractNNEF(NEWEST), tmp_path / "llava")
    assert result.proof is not None
    assert result.proof.outcome.status == "pass"
    assert result.calls == {"embedding": 48, "encoder": 2, "decoder": 48}
    assert result.manifest["parts"]["decoder"]["inputs"]["inputs_embeds"] == ["1", "S", "32"]


def test_a_model_of_text_alone_is_refused() -> None:
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**TEXT)).eval()
    with pytest.raises(InputError, match="LlamaForCausalLM has no get_image_features or get_audio_features"):
        multimodal_program(model, [{"input_ids": torch.ones(1, 6, dtype=torch.int64)}])
