"""Document 001, torch_graph: one test for each of its statements, in its order."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import InferenceTarget, ModelExport, TractNNEF, torch_graph
from t2n_core.errors import InputError
from t2n_core.nnef.archive import write_archive
from t2n_core.op.lower import lower
from t2n_core.op.registry import load_default
from t2n_core.torch_graph import (
    FixedTensorList,
    TensorVariable,
    TorchModuleIRGraph,
    TorchModuleTracer,
    TorchOp,
)
from t2n_core.torch_graph.graph.data import Data
from tests.contract.documents.torch_graphs import NET, X, graph_of, kinds
from tests.pages import ROOT
from tools.lint.places import names_of_pytorch
from tools.lint.tree import Tree

ENGINE = "0.23.9"
DIFFERS = {
    "dynamic shapes are introduced by other modules": "torch.export gives symbolic sizes while it captures, with the "
    "ranges for which the graph is right; sizes that are put in later would be guesses",
    "the graph comes from jit.trace with recursion": "torch.export keeps sizes symbolic, and its graph is flat; a "
    "traced_module is captured by its trace",
}
"""Item -> why it does not hold as written, and what happens instead."""


def run(graph: Any, target: InferenceTarget, folder: Path) -> torch.Tensor:
    """Write an NNEF graph, and return its first output for X in the engine."""
    archive = write_archive(graph, folder / "model.nnef.tgz", spec=target.spec)
    reply = target.engine().run(archive, [[X.numpy()]], timeout=60)
    assert reply.status == "ok", reply
    return torch.from_numpy(reply.outputs[0][0])


def with_sigmoid(graph: TorchModuleIRGraph) -> None:
    """Put a sigmoid in place of the tanh, and twice its result in place of the output."""
    old = next(op for op in graph.op_nodes if op.kind == "aten::tanh")
    changed = TensorVariable("changed", None, old.outputs[0].shape, torch.float32)  # type: ignore[union-attr]
    doubled = TensorVariable("doubled", None, changed.shape, torch.float32)
    graph.op_nodes[graph.op_nodes.index(old)] = TorchOp("aten::sigmoid", "", old.inputs, [changed], "changed")
    graph.op_nodes.append(TorchOp("aten::mul.Tensor", "", [changed, 2], [doubled], "doubled"))
    graph.outputs = [doubled]


EDITED = torch.sigmoid(NET.encode(X)).detach() * 2


def test_the_module_exports_the_five_names() -> None:
    """The module torch_graph holds FixedTensorList, TensorVariable, TorchModuleIRGraph, TorchModuleTracer, TorchOp."""
    names = ["FixedTensorList", "TensorVariable", "TorchModuleIRGraph", "TorchModuleTracer", "TorchOp"]
    assert set(names) < set(torch_graph.__all__)
    assert [getattr(torch_graph, name).__name__ for name in names] == names


def test_it_extracts_the_full_representation_of_the_graph() -> None:
    """It extracts the full representation of the PyTorch graph."""
    graph = graph_of()
    value = {v.name: v.data for v in graph.data_nodes}
    assert kinds(graph) == ["aten::linear", "aten::tanh"]
    assert value["encode.weight"] is not None
    assert torch.equal(value["encode.weight"], NET.encode.weight)


def test_the_representation_is_translated_to_nnef(tmp_path: Path) -> None:
    """The representation is suitable to apply the translation to NNEF."""
    target = TractNNEF(ENGINE)
    nnef = lower(graph_of(), target.spec, load_default(), ["y"])
    torch.testing.assert_close(run(nnef, target, tmp_path), NET(X).detach())


def test_device_memory_and_gradient_parts_are_not_translated() -> None:
    """Parts linked to devices, memory and gradients are ignored."""

    class Moved(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x.to("cpu").contiguous().detach().requires_grad_(False)
            return torch.tanh(x.clone(memory_format=torch.contiguous_format))

    nnef = lower(graph_of(Moved()), TractNNEF(ENGINE).spec, load_default(), ["y"])
    assert [operation.name for operation in nnef.operations] == ["external", "tanh"]


def test_only_this_module_uses_pytorch_internals() -> None:
    """Only this module is affected where internals of PyTorch change."""
    assert list(names_of_pytorch(Tree(ROOT))) == []


def test_all_shapes_are_those_of_the_example() -> None:
    """There is no notion of dynamic axes: all shapes are those of the example."""
    assert all(isinstance(size, int) for node in graph_of().data_nodes for size in node.shape)


def test_dynamic_shapes_differs() -> None:
    """Dynamic shapes are introduced by other modules, if the user asks for them."""
    captured = TorchModuleTracer(NET, args=(X,), dynamic_axes={"x": {0: "B"}}).trace()
    assert [str(v.shape[0]) for v in captured.graph.outputs] == ["B"]
    assert "dynamic shapes are introduced by other modules" in DIFFERS


def test_fixed_tensor_list_is_a_dataclass() -> None:
    """FixedTensorList is a dataclass."""
    parts = FixedTensorList(name="parts", data=[TensorVariable("a", X), TensorVariable("b", X)])
    assert (parts.name, [v.name for v in parts.data]) == ("parts", ["a", "b"])
    assert [one.name for one in dataclasses.fields(parts)] == ["name", "data"]
    assert list(parts) == list(parts.data)


def test_tensor_variable_is_a_dataclass() -> None:
    """TensorVariable is a dataclass."""
    assert dataclasses.is_dataclass(TensorVariable)


def test_tensor_variable_takes_name_data_shape_dtype() -> None:
    """TensorVariable takes name, data, shape and dtype, in this order."""
    assert list(inspect.signature(TensorVariable).parameters)[:4] == ["name", "data", "shape", "dtype"]
    made = TensorVariable("w", X, [5, 3], torch.float32)
    assert (made.name, made.shape, made.dtype) == ("w", (5, 3), torch.float32)
    assert made.data is X


def test_tensor_variable_shape_may_be_unknown() -> None:
    """The shape of a TensorVariable is optional."""
    assert TensorVariable("y", None, None, torch.float32).shape is None
    assert TensorVariable("w", X, None, None).shape == (5, 3)


def test_tensor_variable_dtype_may_be_unknown() -> None:
    """The dtype of a TensorVariable is optional."""
    assert TensorVariable("y", None, (2,), None).dtype is None
    assert TensorVariable("w", X, None, None).dtype is torch.float32


def test_tensor_variable_quant_is_none() -> None:
    """TensorVariable has quant=None."""
    assert TensorVariable("w", X, None, None).quant is None
    with pytest.raises(InputError, match="quantize_per_tensor"):
        TensorVariable("w", X, None, None, {"scale": 0.1, "zero_point": 3})


def test_tensor_variable_traced_data() -> None:
    """TensorVariable has _traced_data=None, the value of the example."""
    assert TensorVariable("y", None, (2,), torch.float32)._traced_data is None
    (output,) = graph_of().outputs
    torch.testing.assert_close(output._traced_data, NET(X).detach())


def test_tensor_variable_is_data() -> None:
    """TensorVariable has the base Data, with a name."""
    assert TensorVariable.__bases__ == (Data,)
    assert [field.name for field in dataclasses.fields(Data)] == ["name"]
    assert all(isinstance(node, Data) for node in graph_of().data_nodes)


def test_graph_is_made_of_a_tracer() -> None:
    """TorchModuleIRGraph takes torch_module_tracer."""
    graph = TorchModuleIRGraph(torch_module_tracer=TorchModuleTracer(NET, args=(X,)))
    assert [v.name for v in graph.inputs] == ["x"]
    with pytest.raises(InputError, match="TorchModuleIRGraph\\(TorchModuleTracer"):
        TorchModuleIRGraph(NET)  # type: ignore[arg-type]


def test_graph_omits_useless_nodes() -> None:
    """TorchModuleIRGraph has omit_useless_nodes=True."""
    assert "aten::mul.Tensor" not in kinds(graph_of())
    assert "aten::mul.Tensor" in kinds(graph_of(omit_useless_nodes=False))


def test_graph_is_root_module() -> None:
    """TorchModuleIRGraph has is_root_module=False."""
    assert inspect.signature(TorchModuleIRGraph).parameters["is_root_module"].default is False
    assert kinds(graph_of(is_root_module=True)) == kinds(graph_of())


def test_jit_trace_differs() -> None:
    """The graph comes from jit.trace with recursion."""
    graph = graph_of(nn.Sequential(NET, nn.ReLU()))
    assert [(op.kind, op.module_path) for op in graph.op_nodes] == [
        ("aten::linear", "0.encode"),
        ("aten::tanh", "0"),
        ("aten::relu", "1"),
    ]
    assert "the graph comes from jit.trace with recursion" in DIFFERS


def test_graph_is_not_a_torch_c_graph() -> None:
    """It is not torch._C.Graph, but a simpler abstraction."""
    assert all(type(part).__module__.startswith("t2n_core") for part in (*graph_of().op_nodes, *graph_of().data_nodes))


def test_graph_has_data_nodes() -> None:
    """It has a list of data nodes in data_nodes."""
    names = [v.name for v in graph_of().data_nodes]
    assert names == ["x", "encode.weight", "encode.bias", "linear", "tanh"]


def test_data_nodes_are_edited(tmp_path: Path) -> None:
    """The data nodes are those that are written, and may be edited."""
    graph, target = graph_of(), TractNNEF(ENGINE)
    weight = next(node for node in graph.data_nodes if node.name == "encode.weight")
    weight.data = NET.encode.weight.detach() * 3
    expected = torch.tanh(X @ NET.encode.weight.T * 3 + NET.encode.bias).detach()
    nnef = lower(graph, target.spec, load_default(), ["y"])
    torch.testing.assert_close(run(nnef, target, tmp_path), expected)


def test_data_nodes_are_added() -> None:
    """Data nodes are added to data_nodes, and removed with the operator that returns them."""
    graph, added = graph_of(), TensorVariable("added", None, (5, 2), torch.float32)
    graph.data_nodes.append(added)
    assert [v.name for v in graph.data_nodes] == ["x", "encode.weight", "encode.bias", "linear", "tanh", "added"]
    graph.op_nodes.append(TorchOp("aten::relu", "", graph.outputs, [added], "added"))
    assert graph.data_nodes.count(added) == 1
    del graph.op_nodes[-2:]
    assert [v.name for v in graph.data_nodes] == ["x", "encode.weight", "encode.bias", "linear"]


def test_graph_has_op_nodes() -> None:
    """It has a list of operation nodes in op_nodes."""
    assert isinstance(graph_of().op_nodes, list)
    assert all(isinstance(op, TorchOp) for op in graph_of().op_nodes)


def test_inputs_are_data_nodes() -> None:
    """The list inputs refers to some of data_nodes."""
    graph = graph_of()
    assert graph.inputs == [node for node in graph.data_nodes if node.name == "x"]


def test_outputs_are_data_nodes() -> None:
    """The list outputs refers to some of data_nodes."""
    graph = graph_of()
    assert graph.outputs == [node for node in graph.data_nodes if node.name == "tanh"]


def test_missing_information_is_completed() -> None:
    """The graph is manipulated to complete missing information about data."""
    graph = graph_of()
    unknown = TensorVariable("unknown", None, None, None)
    graph.op_nodes.append(TorchOp("aten::sum.dim_IntList", "", [graph.outputs[0], [1]], [unknown], "total", None, None))
    assert str(graph.data_nodes[-1]) == "unknown: None[?]"
    graph.op_nodes[-1].realise_output_type_and_size()
    assert str(graph.data_nodes[-1]) == "unknown: float32[5]"


def test_a_manipulated_graph_is_the_graph_that_is_written(tmp_path: Path) -> None:
    """A manipulated graph is the graph that is translated."""
    graph, target = graph_of(), TractNNEF(ENGINE)
    with_sigmoid(graph)
    nnef = lower(graph, target.spec, load_default(), ["y"])
    torch.testing.assert_close(run(nnef, target, tmp_path), EDITED)


@pytest.mark.parametrize("realised", [True, False])
def test_a_result_made_by_hand_is_realised_before_the_export(realised: bool, tmp_path: Path) -> None:
    """Missing information is completed for a graph of an export, or it is refused."""

    class Editing(TractNNEF):
        def post_capture(self, graph: Any) -> None:
            op = TorchOp("aten::sigmoid", "", graph.outputs, [TensorVariable("new", None, None, None)], "new")
            graph.op_nodes.append(op)
            graph.outputs = list(op.outputs)
            if realised:
                assert op.realise_output_type_and_size() == ((torch.float32, (5, 2)),)

    export, target = ModelExport(NET, X), Editing(ENGINE)
    if not realised:
        with pytest.raises(InputError, match="realise_output_type_and_size"):
            export.lower(target)
        return
    torch.testing.assert_close(run(export.lower(target), target, tmp_path), torch.sigmoid(NET(X)).detach())


@pytest.mark.parametrize("place", ["post_capture", "captured"])
def test_the_graph_of_an_export_is_manipulated(place: str, tmp_path: Path) -> None:
    """A manipulated graph of an export is the graph that is exported."""

    class Editing(TractNNEF):
        def post_capture(self, graph: Any) -> None:
            with_sigmoid(graph)

    export = ModelExport(NET, X)
    target = Editing(ENGINE) if place == "post_capture" else TractNNEF(ENGINE)
    if place == "captured":
        with_sigmoid(export.captured.graph)
    torch.testing.assert_close(run(export.lower(target), target, tmp_path), EDITED)


def test_useless_operations_are_ignored() -> None:
    """Operations without effect on the translation are ignored."""
    quiet = nn.Sequential(nn.Dropout(0.5), nn.Identity(), nn.Tanh()).eval()
    assert kinds(graph_of(quiet)) == ["aten::tanh"]


def test_containers_are_not_nested() -> None:
    """Only containers that are not nested are supported."""

    class Joined(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat(torch.split(x, 2, 1), 1)

    split, cat = graph_of(Joined()).op_nodes
    assert isinstance(cat.arguments["tensors"], FixedTensorList)
    assert list(cat.arguments["tensors"]) == list(split.outputs)
