"""Commands that take an ONNX model where an archive may stand, in real releases of tract."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest

from pytest_t2n.cli.command import main
from tests.onnx_nets import linear
from tests.releases import LINES, NEWEST


@pytest.fixture(autouse=True)
def engines(resolved_engine) -> None:
    """Fetch the engines, since the commands are offline."""
    for release in (LINES[-2], NEWEST):
        resolved_engine(release)


@pytest.mark.parametrize("given", [(), ("--inputs", "x.npz")], ids=["drawn", "given"])
def test_the_time_of_a_model_goes_to_its_nodes(given, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    net = linear()
    net.graph.node[1].name = "bias"
    onnx.save(net, "weights.bin", save_as_external_data=True, location="net.data", size_threshold=0)
    np.savez("x.npz", x=np.ones((400, 5), "f4"))
    assert main(["profile", "weights.bin", "--engine", NEWEST, "--seconds", "0.1", "--offline", "--json", *given]) == 0
    (found,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert {"MatMul"} <= {line["operator"] for line in found["lines"]}
    assert sum(line["share"] for line in found["lines"] if line["name"] in ("m", "bias")) > 0.5
