"""The judgement of archives with and without PyTorch, and whose a disagreement is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.lab.measure.archives.judging import judge_archive
from conformance.lab.measure.archives.page import archives_page, who
from t2n_core.engine.protocol import EngineReply
from tests.releases import NEWEST

GRAPH = "version 1.0; graph g(x) -> (y) { x = external<scalar>(shape = [2, 3]); y = mul(x, 2.0); }"
ROW = {
    "name": "net", "exporter": "ours", "release": NEWEST, "export": "", "definitions": "right", "reason": "",
    "same_inputs": "right", "pytorch": "right", "pytorch_reason": "", "meaning": "right",
    "evaluation_seconds": 0.5, "engine_seconds": {"load": 0.25, "run": 0.25},
}  # fmt: skip


class Doubling:
    """An engine that multiplies by a factor, or fails."""

    name, version, kept_states = "tract", NEWEST, None

    def __init__(self, factor: float | None) -> None:
        self.factor = factor

    def run(self, archive: Path, batches: Sequence[Any], *, timeout: float = 60.0) -> EngineReply:
        if self.factor is None:
            return EngineReply("error", "load", "no such operator")
        outputs = tuple((batch[0] * np.float32(self.factor),) for batch in batches)
        return EngineReply("ok", "run", outputs=outputs, times={"load": 0.1, "run": 0.2})

    def close(self) -> None: ...


def _judged(folder: Path, factor: float | None, of_model: float) -> dict[str, Any]:
    random = np.random.default_rng(5)
    (folder / "net").mkdir()
    (folder / "net/graph.nnef").write_text(GRAPH, "utf-8")
    for number in range(2):
        x = random.standard_normal((2, 3)).astype(np.float32)
        np.savez(folder / f"inputs_{number}.npz", x=x)
        np.savez(folder / f"outputs_{number}.npz", x * np.float32(of_model))
    return judge_archive(folder / "net", folder, Doubling(factor))


@pytest.mark.parametrize(
    ("factor", "of_model", "definitions", "pytorch", "meaning"),
    [
        (2.0, 2.0, "right", "right", "right"),
        (3.0, 2.0, "wrong", "wrong", "right"),  # the engine
        (2.0, 3.0, "right", "wrong", "y: "),  # the exporter
        (None, 2.0, "refused", "refused", "right"),
    ],
)
def test_verdicts(
    factor: float | None, of_model: float, definitions: str, pytorch: str, meaning: str, tmp_path: Path
) -> None:
    row = _judged(tmp_path, factor, of_model)
    assert (row["definitions"], row["pytorch"]) == (definitions, pytorch)
    assert row["meaning"].startswith(meaning)
    assert row["evaluation_seconds"] > 0


def test_an_archive_that_cannot_be_read_is_not_evaluated(tmp_path: Path) -> None:
    (tmp_path / "graph.nnef").write_text("version 1.0; graph", "utf-8")
    row = judge_archive(tmp_path, tmp_path, Doubling(2.0))
    assert row["definitions"] == "not evaluated"
    assert row["reason"].startswith("InputError: ")


def test_a_malformed_archive_is_refused_by_the_definitions_too(tmp_path: Path) -> None:
    _judged(tmp_path, 2.0, 2.0)
    (tmp_path / "net/graph.nnef").write_text(GRAPH.replace("mul(x, 2.0)", "mul(x, size0)"), "utf-8")
    row = judge_archive(tmp_path / "net", tmp_path, Doubling(None))
    assert (row["definitions"], row["pytorch"]) == ("refused", "refused")
    assert "no statement defines `size0`, in `y = mul(x, size0)`" in row["reason"]
    assert who({**ROW, **row}) == ""


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({}, ""),
        ({"export": "NotImplementedError"}, ""),
        ({"definitions": "wrong", "same_inputs": "wrong", "pytorch": "wrong"}, ""),
        ({"pytorch": "wrong", "meaning": "y: 3 off"}, "exporter"),
        ({"definitions": "refused"}, "inputs"),
        ({"definitions": "wrong", "same_inputs": "wrong"}, "rounding"),
        ({"definitions": "not evaluated"}, "not evaluated"),
    ],
)
def test_a_disagreement_has_an_owner(change: dict[str, str], kind: str) -> None:
    assert who({**ROW, **change}) == kind


def test_the_page_counts_the_last_row_of_an_archive() -> None:
    theirs = {**ROW, "exporter": "torch-to-nnef", "pytorch": "wrong", "meaning": "y: 3 off"}
    other = {"name": "other", "exporter": "ours", "release": NEWEST, "export": "no rule"}
    text = archives_page([{**ROW, "pytorch": "wrong"}, ROW, other, theirs])
    assert f"| ours | {NEWEST} | 1 of 2 | PyTorch | 1 | 0 | 0 | 0 | 0 | 0 |" in text
    assert f"| ours | {NEWEST} | 1 of 1 | 0 | 0 | 0 | 0 |" in text
    assert f"| torch-to-nnef | {NEWEST} | 0 of 1 | 1 | 0 | 0 | 0 |" in text
    assert f"| net | torch-to-nnef | {NEWEST} | right | wrong | exporter | y: 3 off |" in text
    assert f"| ours | {NEWEST} | 1 | 2.00 | 2.00 | 2.00 |" in text
