"""The tables of files beside those of torch.onnx, and of what weights of fewer bits lose."""

from __future__ import annotations

import numpy as np

from conformance.lab.archives import largest_error
from conformance.lab.measure import onnx_files, weight_losses


def test_files_side_by_side() -> None:
    figures = {"bytes": 2_400_400, "ready": 20.4, "run": 1.25, "error": 2e-6}
    row = {"net": "a", ".tgz": figures, ".tar": {**figures, "run": 2.5, "error": 1e-6}, ".onnx": {"bytes": 9e6}}
    *_, line = onnx_files.table_of([row]).splitlines()
    assert line == ("| `a` | 2,400 | 2,400 | 9,000 | 20 | 20 | refused | 2.50 | refused | 1.0e-06 | refused |")


def test_losses_by_net_and_format() -> None:
    names = ("float32", *weight_losses.FORMATS)
    rows = [{"net": "a", "weights": name, "share": 0.25, "rms": 0.0312, "most": 0.1} for name in names]
    *_, line = weight_losses.table_of(rows).splitlines()
    assert line == f"| `a` |{' 0.25, 3.12%, 10.00% |' * 4}"


def test_errors_of_outputs() -> None:
    got, wanted = [np.array([1.0, 3.0]), np.array([5.0])], [np.array([1.0, 2.0]), np.array([7.0])]
    spread = np.std([1.0, 2.0, 7.0])
    found = weight_losses.errors(got, wanted)
    np.testing.assert_allclose([found["rms"], found["most"]], [(5 / 3) ** 0.5 / spread, 2 / spread])
    assert largest_error(got, wanted) == 2
