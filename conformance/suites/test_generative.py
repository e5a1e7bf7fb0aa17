"""Suite `generative`: models that generate tokens, 32 greedy steps each, and encoders that hear piece by piece.

All are small and have random weights. Needs transformers: `tox -e models` has it. Only engines are downloaded.
"""

from __future__ import annotations

import importlib
import importlib.util
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from t2n_core import ModelExport

if TYPE_CHECKING:
    from conformance.cases.generative.case import GenerativeCase
    from conformance.cases.generative.streaming import StreamingCase

if importlib.util.find_spec("transformers") is None:
    pytest.skip("transformers is not installed; run `tox -e models`", allow_module_level=True)

importlib.import_module("conformance.cases.models.libraries")  # before the library itself


def cases_of(*families: str) -> dict[str, Any]:
    """Return the cases of some families by name."""
    cases: dict[str, Any] = {}
    for family in families:
        cases.update(importlib.import_module(f"conformance.cases.generative.{family}").CASES)
    return cases


CASES: dict[str, GenerativeCase] = cases_of("decoders", "recurrent", "encoder_decoders")
STREAMING: dict[str, StreamingCase] = cases_of("streaming")
SMALL_WEIGHTS = (
    "llama", "qwen3", "phi3", "gemma3-window", "mistral-window", "stablelm", "olmo2", "gpt2", "opt", "bloom-alibi",
)  # fmt: skip
"""Decoders that also run in float16, and with weights of 4 bits."""

SPREAD_OF_FLOAT16 = {"bloom-alibi": 2.0}
"""Factors of matrices where weights as they are would hide the state in the rounding of float16."""


@pytest.mark.nnef_generate(target="tract", steps=32)
@pytest.mark.parametrize("name", list(CASES))
def test_generation(name: str) -> Any:
    return CASES[name].build(zlib.crc32(name.encode()))


@pytest.mark.nnef_generate(target="tract", steps=32)
@pytest.mark.parametrize("name", SMALL_WEIGHTS)
def test_generation_in_float16(name: str) -> Any:
    model, example = CASES[name].build(zlib.crc32(name.encode()), spread=SPREAD_OF_FLOAT16.get(name, 1.0))
    return model.half(), example


@pytest.mark.nnef_generate(target="tract", steps=32, weights="q4_0", versions=">=0.21.11")
@pytest.mark.parametrize("name", SMALL_WEIGHTS)
def test_generation_in_4_bits(name: str) -> Any:
    return CASES[name].build(zlib.crc32(name.encode()))


PIECES = 8


@lru_cache(maxsize=1)
def streaming_export(name: str) -> tuple[ModelExport, list[torch.Tensor], list[torch.Tensor]]:
    """Return the export of one step, with the caches that the first piece leaves, pieces, and what the model gives."""
    case = STREAMING[name]
    model, _ = case.build(zlib.crc32(name.encode()))
    pieces = case.pieces(PIECES)
    heard, _ = case.heard(model, pieces)
    if not case.looks_ahead:
        with torch.no_grad():
            full_output = getattr(model(**{case.name: torch.cat(pieces, case.axis)}), case.result)
        torch.testing.assert_close(torch.cat(heard, case.time), full_output, atol=1e-4, rtol=1e-4)
    _, call = case.heard(model, pieces[:1])
    return ModelExport(model, {**call, case.name: pieces[1]}, state=case.caches(model)), pieces, heard


@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("name", list(STREAMING))
def test_streaming(name: str, nnef_export: Any) -> None:
    """Check piece after piece; from zeros on, or from the caches that the model's first piece leaves."""
    export, pieces, heard = streaming_export(name)
    result = nnef_export(export)
    result.assert_parity("approximate")
    pairs = [(pair.input, pair.output) for pair in result.state]
    example = dict(zip(result.input_names, result.samples[0].inputs, strict=True))
    first = int(STREAMING[name].pads_first)
    initial = [example[pair.input] if first else pair.initial for pair in result.state]
    with result.target.engine().session(result.archive, state=pairs, initial=initial) as session:
        for piece, expected in zip(pieces[first:], heard[first:], strict=True):
            (got, *_) = session.run([piece.numpy()])
            assert np.abs(got - expected.numpy()).max() <= 1e-4 * np.abs(expected.numpy()).max()
