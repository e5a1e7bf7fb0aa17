"""Logits of some tokens of a step: of the last ones, or of positions that each call gives."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from t2n_core import TractNNEF
from t2n_core.errors import InputError
from t2n_core.generative import GenerativeExport, GenerativeResult, export_generative
from tests.contract.generative.test_export_generative import llama, recurrent, with_encoder
from tests.releases import NEWEST, on_each_line

VERSIONS = on_each_line("0.21.19", NEWEST, since="0.21")


@cache
def export_with(last_logits: int | str) -> GenerativeExport:
    """Return the export of a Llama, captured once for all releases; positions also as an archive of one token."""
    return GenerativeExport(llama(), last_logits=last_logits, step_archive=last_logits == "input")


def logits(result: GenerativeResult, ids: list[int], *further: list[int]) -> Any:
    """Return the logits of a prompt, by the engine."""
    arrays: list[Any] = [np.array([ids]), *(pair.initial for pair in result.state), *map(np.array, further)]
    return result.decoder.target.engine().run(result.decoder.archive, [arrays]).outputs[0][0][0]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_last_ones(version: str, resolved_engine: Any, tmp_path: Path) -> None:
    resolved_engine(version)
    export = export_with(3)
    model = export.model
    result = export.to(TractNNEF(version), tmp_path / "out", steps=4)
    assert result.proof is not None
    assert result.proof.tokens == "12/12"
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["logits"] == "of the last 3"
    ids = [5, 17, 3, 8, 44, 2, 9]
    for count in (7, 3, 2, 1):
        with torch.no_grad():
            expected = model(input_ids=torch.tensor([ids[:count]])).logits[0, -3:].numpy()
        np.testing.assert_allclose(logits(result, ids[:count]), expected, atol=1e-5)


@pytest.mark.parametrize("version", VERSIONS)
def test_those_of_positions_that_a_call_gives(version: str, resolved_engine: Any, tmp_path: Path) -> None:
    resolved_engine(version)
    export, out = export_with("input"), tmp_path / "out"
    result = export.to(TractNNEF(version), out, steps=4)
    assert result.proof is not None
    assert result.proof.tokens == "12/12"
    assert result.decoder.input_names[-1] == "logits_to_keep"
    assert str(result.decoder.range) == "K >= 1, P >= 0, S >= 1, P + S <= 96"
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["logits"] == "of the positions in the input logits_to_keep"
    assert manifest["parts"]["decoder"]["inputs"]["logits_to_keep"] == ["K"]
    ids = [5, 17, 3, 8, 44, 2, 9]
    with torch.no_grad():
        all_logits = export.model(input_ids=torch.tensor([ids])).logits[0].numpy()
    for places in ([-1], [-3, -2, -1], [0, 6, 2, -7]):
        np.testing.assert_allclose(logits(result, ids, places), all_logits[places], atol=1e-5)
    assert sorted(file.stem for file in (out / "tests").iterdir()) == [
        "prompt_io",
        "prompt_with_past_io",
        "text_generation_io",
    ]
    lost = result.measure_loss(text=ids)
    assert (lost.agreement, lost.tokens) == (1, 7)


@pytest.mark.parametrize(
    ("make", "expected", "message"),
    [
        (llama, -1, "last_logits=-1 is neither a number of tokens"),
        (llama, "last", "last_logits='last' is neither a number of tokens"),
        (recurrent, "input", "MambaForCausalLM takes one token a step"),
        (with_encoder, 2, "T5ForConditionalGeneration computes the logits of all tokens"),
    ],
)
def test_what_means_nothing_is_refused(make: Any, expected: Any, message: str, tmp_path: Path) -> None:
    example = {"input_ids": torch.randint(1, 61, (1, 7))} if make is with_encoder else None
    with pytest.raises(InputError, match=message):
        export_generative(make(), example, TractNNEF(NEWEST), tmp_path / "out", last_logits=expected)
