"""The hints of outcomes of files that an engine refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.check.file import check_file, open_checked
from t2n_core.engine.protocol import EngineReply
from t2n_core.onnx_file.refusals import REFUSAL
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from tests.onnx_nets import linear, saved

MESSAGE = 'Evaluating #7 "sum" CumSum\n\nCaused by:\n    TDim is not a number'


class RefusingEngine:
    """Gives outputs for some sets of inputs, and an error for the next."""

    name, version, kept_states = "tract", "0.23.9", None

    def __init__(self, accepted: int) -> None:
        self.accepted = accepted

    def run(self, archive: Path, batches: Any, **options: Any) -> EngineReply:
        return EngineReply("error", "run", MESSAGE, outputs=tuple(batches[: self.accepted]))

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
