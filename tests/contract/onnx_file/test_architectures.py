"""The two verdicts on a file that an exporter wrote of a model, in real releases of tract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from conformance.onnx.architectures.judging import FILE, judge, repair
from tests.onnx_nets import linear, model, saved, tensor
from tests.releases import LINES, NEWEST


@pytest.mark.parametrize("off", [0.0, 1.0])
def test_a_file_that_is_not_the_model(off: float, tmp_path: Path, tract_engine: Any) -> None:
    """The engine computes the file, and only PyTorch's outputs tell that it is another model."""
    net = linear()
    weight, bias = (numpy_helper.to_array(initializer) for initializer in net.graph.initializer)
    saved(net, tmp_path / FILE)
    for number in range(2):
        x = np.random.default_rng(number).normal(size=(3, 5)).astype("f4")
        np.savez(tmp_path / f"inputs_{number}.npz", x=x)
        np.savez(tmp_path / f"outputs_{number}.npz", x @ weight + bias + np.float32(off))
    row = judge(tmp_path, tract_engine(NEWEST))
    assert (row["reference"]["status"], row["reference"]["by"]) == ("pass", "onnxruntime")
    assert len(row["reference"]["sizes"]) == 6
    assert row["pytorch"]["status"] == ("mismatch" if off else "pass")
    assert row["file"]["differs"] == ("y: 1 off; y: 1 off" if off else "")


def test_a_file_after_repairs(tmp_path: Path, tract_engine: Any) -> None:
    node = helper.make_node("Gelu", ["x"], ["y"])
    saved(model([node], [tensor("x", ["B", 5])], [tensor("y", ["B", 5])], opset=20), tmp_path / FILE)
    row = repair(tmp_path, tract_engine(LINES[-3]))
    assert (row["status"], row["repairs"]) == ("pass", ("inline functions",))
