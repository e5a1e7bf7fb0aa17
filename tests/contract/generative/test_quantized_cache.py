"""A cache that the engine quantizes: what it loses is measured, and where it cannot is an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_t2n.cli.command import main
from t2n_core import TractNNEF
from t2n_core.errors import InputError
from t2n_core.generative import export_generative
from tests.contract.generative.test_export_generative import llama
from tests.releases import NEWEST

TEXT = [(7 * index + index * index) % 61 for index in range(60)]


def test_fewer_bits_lose_more(resolved_engine: Any, tmp_path: Path) -> None:
    resolved_engine(NEWEST)
    target = TractNNEF(NEWEST, check_io=False, reify_sdpa_operator=True)
    result = export_generative(llama(), None, target, tmp_path / "out")
    eight, four = (result.measure_cache(bits, TEXT) for bits in (8, 4))
    assert 0 < eight.logits.divergence < four.logits.divergence < 0.1
    assert four.overlap < eight.overlap <= 1 - 0.9**61
    assert four.bytes < eight.bytes < eight.plain_bytes == 60 * 2 * 3 * 4 * 4
    assert eight.logits.agreement > 0.95
    assert eight.logits.reference == pytest.approx(result.measure_loss(text=TEXT).perplexity, rel=1e-5)
    with pytest.raises(InputError, match="a cache of 2 bits: the engine has 8 and 4"):
        result.measure_cache(2, TEXT)
    formula = TractNNEF(NEWEST, check_io=False)
    of_formula = export_generative(llama(), None, formula, tmp_path / "formula")
    with pytest.raises(InputError, match="`quantize_kv_storage` changes no logits"):
        of_formula.measure_cache(8, TEXT[:12])


def test_a_folder_with_a_quantized_cache(
    resolved_engine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resolved_engine(NEWEST)
    llama().save_pretrained(tmp_path / "in")
    common = ["export-llm", str(tmp_path / "in"), "--no-tokenizer", "--steps=4", "--kv=engine-int8"]
    assert main([*common, "-o", str(tmp_path / "out"), f"--tract={NEWEST}"]) == 0
    assert "the cache in 8 bits: 6.0 kB in place of 9.2; perplexity" in capsys.readouterr().out
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["transforms"] == ["detect_kv_cache", "quantize_kv_storage"]
    assert manifest["cache"]["bits"] == 8
    assert 0.9 < manifest["cache"]["overlap"] < 1


@pytest.mark.parametrize(
    ("version", "message"),
    [("0.21.19", "0.21.19 cannot hold a cache"), ("0.22.4", "0.22.4 cannot hold a cache")],
)
def test_older_releases_are_refused(version: str, message: str, resolved_engine: Any, tmp_path: Path) -> None:
    resolved_engine(version)
    with pytest.raises(InputError, match=message):
        export_generative(llama(), None, TractNNEF(version), tmp_path / "out", kv="engine-int4")
    assert not (tmp_path / "out").exists()
