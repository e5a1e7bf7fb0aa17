"""The hints of outcomes of files that an engine refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.check.file import check_file, file_request, open_checked
from t2n_core.engine.protocol import EngineReply
from t2n_core.onnx_file.refusals import REFUSAL
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from tests.onnx_nets import linear, saved
from tests.releases import NEWEST

MESSAGE = 'Evaluating #7 "sum" CumSum\n\nCaused by:\n    TDim is not a number'


class RefusingEngine:
    """Gives outputs for some sets of inputs, and an error for the next."""

    name, version, kept_states = "tract", NEWEST, None

    def __init__(self, accepted: int, stage: str = "run") -> None:
        self.accepted, self.stage = accepted, stage

    def run(self, archive: Path, batches: Any, **options: Any) -> EngineReply:
        return EngineReply("error", self.stage, MESSAGE, outputs=tuple(batches[: self.accepted]))

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("accepted", "first"), [(0, ""), (2, "it ran at B=3; B=3, and failed at the next; ")])
def test_a_refused_onnx_model_has_its_reason_beside_any_hint(accepted: int, first: str, tmp_path: Path) -> None:
    file = open_checked(saved(linear(), tmp_path / "net.onnx"), {})
    sample = Sample((np.ones((3, 5), "f4"),), (np.ones((3, 3), "f4"),), {"B": 3})
    request = CheckRequest(file.path, [sample] * 3, file.names[1], reference="onnxruntime")
    outcome = check_file(file, RefusingEngine(accepted), "tract", request)
    assert outcome.error is not None
    assert (outcome.facts[REFUSAL], outcome.error.op) == ("shape arithmetic", "CumSum")
    assert outcome.error.hint.startswith(f"{first}node `sum` (CumSum): this release computes sizes")


@pytest.mark.parametrize("stage", ["load", "optimise", "run"])
def test_an_archive_of_another_release_is_refused_before_it_runs(stage: str, tmp_path: Path) -> None:
    (tmp_path / "graph.nnef").write_text(
        "version 1.0;\n\ngraph g(x) -> (y)\n{\n  x = external<scalar>(shape = [2]);\n  y = relu(x);\n}\n"
    )
    file = open_checked(tmp_path, {})
    values = (np.ones(2, "f4"),)
    request = file_request(file, [values], [values], "tract", Judgement("exact"), 60.0)
    outcome = check_file(file, RefusingEngine(0, stage), "tract", request)
    assert outcome.error is not None
    hint = f"an archive is for the release that it was exported for: export it for this one with --tract {NEWEST}"
    assert outcome.error.hint == ("" if stage == "run" else hint)
