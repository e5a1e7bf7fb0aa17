"""A decoder with caches in the engines: the tokens of PyTorch, and no cache outside where the engine can hold them."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.lab.measure import decoding
from conformance.lab.measure.nets.decoder import Size
from t2n_core.engine import resolve_engines
from tests.releases import NEWEST

SMALL = Size(layers=2, heads=6, shared=2, width=8, inner=32, words=97)


@pytest.mark.parametrize("version", ["0.21.19", "0.22.4", NEWEST])
def test_tokens_of_a_decoder(version: str, tmp_path: Path) -> None:
    """The process fails where `detect_kv_cache` of 0.23 leaves a cache among the inputs."""
    (engine,) = resolve_engines(version)
    found = decoding.run_turns(engine, decoding.export_forms(tmp_path, engine, SMALL), SMALL, 7, 12, 1)
    assert ("float32, own cache" in found) == version.startswith("0.23")
    for form in {"float32", "float32, one token", "float32, own cache"} & found.keys():
        assert found[form]["tokens"] == found["torch"]["tokens"]
    assert len(set(found["torch"]["tokens"])) > 4
    assert {"float32, one token", decoding.PRODUCTS} <= found.keys()
    measured = {"export": {"ours": 1.0, "torch.export": 2.0}, "engines": {version: found}}
    assert "| all | export, against torch.export alone | 0.50 x | at most 1.3 x | met |" in decoding.tables(measured)[0]
