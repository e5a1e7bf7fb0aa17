"""Scenarios in the archive: tract's two, a prompt that goes on, and sizes out of the range, which are refused."""

from __future__ import annotations

import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core import TractNNEF
from t2n_core.generative import GenerativeExport
from tests.contract.generative.test_export_generative import llama
from tests.releases import NEWEST, on_each_line


@cache
def export_with_scenarios() -> GenerativeExport:
    """Return the export of a Llama, captured once for all releases."""
    return GenerativeExport(llama(), scenarios=True)


@pytest.mark.proofs
@pytest.mark.parametrize("version", on_each_line("0.21.19", NEWEST, since="0.21"))
def test_scenarios_are_named_and_the_range_is_still_checked(version: str, resolved_engine: Any, tmp_path: Path) -> None:
    resolved_engine(version)
    result = export_with_scenarios().to(TractNNEF(version), tmp_path / "out", steps=4)
    with tarfile.open(result.decoder.archive) as archive:
        (name,) = (member for member in archive.getnames() if member.endswith("graph.nnef"))
        text = archive.extractfile(name).read().decode()  # type: ignore[union-attr]
    lines = [line.removeprefix("extension tract_assert ") for line in text.splitlines() if "tract_assert" in line]
    assert {"tg: S == 1;", "pp: P == 0;", "any: S > 0;"} <= set(lines)
    proof = result.proof
    assert proof is not None
    assert proof.tokens == "12/12"
    ways = {check.name: check.text for check in proof.further}
    assert (ways["prompt in chunks"], ways["prompt token by token"]) == ("pass", "pass")

    def run(tokens: int, past: int) -> Any:
        caches = [np.zeros((1, 3, past, 4), np.float32) for _ in result.state]
        return result.decoder.target.engine().run(result.decoder.archive, [[np.ones((1, tokens), np.int64), *caches]])

    for tokens, past in ((1, 95), (96, 0), (1, 0), (40, 50)):
        assert run(tokens, past).status == "ok", (tokens, past)
    for tokens, past in ((1, 96), (97, 0), (47, 50)):
        assert run(tokens, past).status == "error", (tokens, past)
