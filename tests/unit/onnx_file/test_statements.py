"""Nodes of ONNX models as statements."""

from __future__ import annotations

from pathlib import Path

from onnx import helper

from t2n_core.onnx_file.model import read_model
from t2n_core.onnx_file.statements import document_of, origins_of
from tests.onnx_nets import model, saved, tensor

NOTES = {
    "pkg.torch.onnx.fx_node": "%y : call_function[target=torch.ops.aten.add.Tensor](args = (%m, %x), kwargs = {})",
    "pkg.torch.onnx.name_scopes": "['', 'n', 'n.0', 'add']",
    "pkg.torch.onnx.stack_trace": 'File "net.py", line 9, in forward\n    return self.n(x)\n'
    '  File "/lib/torch/nn/modules/linear.py", line 125, in forward\n    return F.linear(input)',
}


def test_nodes_have_the_names_that_engines_give_them(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"]),
        helper.make_node("Split", ["t"], ["", "b"], name="halves"),
        helper.make_node("Add", ["b", "x"], ["y"], name="sum"),
    ]
    for key, value in NOTES.items():
        nodes[2].metadata_props.add(key=key, value=value)
    net = read_model(saved(model(nodes, [tensor("x", [4])], [tensor("y", [2])]), tmp_path / "net.onnx"))
    document = document_of(net)
    assert [assignment.text() for assignment in document.assignments] == [
        "t = Tanh(x)",
        "halves = Split(t)",
        "sum = Add(halves, x)",
    ]
    assert (document.inputs, document.outputs) == (("x",), ("y",))
    assert origins_of(net) == {"sum": "aten::add.Tensor in module `n.0` at net.py:9 in forward: `return self.n(x)`"}
