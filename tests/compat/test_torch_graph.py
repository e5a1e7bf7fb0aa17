"""The torch graph by torch-to-nnef's names: a graph that is read, edited and written."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import InputError
from t2n_core.nnef.archive import write_archive
from t2n_core.op.custom_extractors import ModuleInfoExtractor
from t2n_core.op.lower import lower
from t2n_core.op.registry import load_default
from t2n_core.torch_graph import (
    FixedTensorList,
    T2NErrorTorchJitTraceFailed,
    TensorVariable,
    TorchModuleIRGraph,
    TorchModuleTracer,
    TorchOp,
)
from t2n_core.torch_graph.capture import tracer as tracer_module
from t2n_core.torch_graph.graph import ir
from t2n_core.torch_graph.graph.data import Data
from tests.nets import OfFunction
from tests.releases import NEWEST


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        unused = x * 7  # noqa: F841
        return torch.tanh(self.encode(x))

    def encode_only(self, x: torch.Tensor) -> torch.Tensor:
        return self.encode(x) + 1


NET = Net().eval()
X = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
TARGET = TractNNEF(NEWEST)
EDITED = torch.sigmoid(NET.encode(X)).detach() * 2
X_NODE = TensorVariable("x", X, None, None)
UNKNOWN = TensorVariable("y", None, None, None)


def graph_of(module: nn.Module = NET, x: torch.Tensor = X, **options: Any) -> TorchModuleIRGraph:
    return TorchModuleIRGraph(TorchModuleTracer(module, args=(x,)), **options)


def kinds(graph: TorchModuleIRGraph) -> list[str]:
    return [op.kind for op in graph.op_nodes]


def lowered(graph: TorchModuleIRGraph) -> Any:
    return lower(graph, TARGET.spec, load_default(), ["y"])


def run(graph: Any, folder: Path) -> torch.Tensor:
    """Return the first output of an NNEF graph for X in the engine."""
    archive = write_archive(graph, folder / "model.nnef.tgz", spec=TARGET.spec)
    reply = TARGET.engine().run(archive, [[X.numpy()]], timeout=60)
    assert reply.status == "ok", reply
    return torch.from_numpy(reply.outputs[0][0])


def with_sigmoid(graph: TorchModuleIRGraph) -> None:
    """Replace the tanh by a sigmoid, and the output by its double."""
    (old,) = (op for op in graph.op_nodes if op.kind == "aten::tanh")
    changed = TensorVariable("changed", None, old.outputs[0].shape, torch.float32)
    doubled = TensorVariable("doubled", None, changed.shape, torch.float32)
    graph.op_nodes[graph.op_nodes.index(old)] = TorchOp("aten::sigmoid", "", old.inputs, [changed], "changed")
    graph.op_nodes.append(TorchOp("aten::mul.Tensor", "", [changed, 2], [doubled], "doubled"))
    graph.outputs = [doubled]


def test_graph_of_a_module() -> None:
    graph = graph_of(nn.Sequential(NET, nn.Dropout(0.5), nn.Identity(), nn.ReLU()).eval())
    nodes = [("aten::linear", "0.encode"), ("aten::tanh", "0"), ("aten::relu", "3")]
    assert [(op.kind, op.module_path) for op in graph.op_nodes] == nodes
    assert [op.scope for op in graph.op_nodes] == ["linear", "tanh", "relu"]
    names = ["input", "0.encode.weight", "0.encode.bias", "linear", "tanh", "relu"]
    assert [node.name for node in graph.data_nodes] == names
    assert all(isinstance(node, Data) and all(type(size) is int for size in node.shape) for node in graph.data_nodes)
    assert torch.equal(graph.data_nodes[1].data, NET.encode.weight)
    assert (graph.inputs, graph.outputs) == ([graph.data_nodes[0]], [graph.data_nodes[-1]])
    torch.testing.assert_close(graph.data_nodes[-2]._traced_data, NET(X).detach())


def test_arguments_of_the_graph() -> None:
    assert kinds(TorchModuleIRGraph(torch_module_tracer=TorchModuleTracer(NET, args=(X,)))) == kinds(graph_of())
    assert kinds(graph_of(is_root_module=True)) == kinds(graph_of()) == ["aten::linear", "aten::tanh"]
    assert "aten::mul.Tensor" in kinds(graph_of(omit_useless_nodes=False))
    with pytest.raises(InputError, match="TorchModuleIRGraph\\(TorchModuleTracer"):
        TorchModuleIRGraph(NET)


def test_operations_on_devices_memory_and_gradients_are_no_nodes() -> None:
    def moved(x: torch.Tensor) -> torch.Tensor:
        x = x.to("cpu").contiguous().detach().requires_grad_(False).to(torch.device("cpu"), torch.float32)
        return torch.tanh(x.clone(memory_format=torch.contiguous_format).cpu().float()).to("cpu", copy=True)

    assert kinds(graph_of(OfFunction(moved))) == ["aten::tanh"]
    assert kinds(graph_of(OfFunction(lambda x: x.to("cpu", torch.float64)))) != []


def test_registered_extractors_reroute_modules_by_class() -> None:
    class Reads(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2.0 if float(x.sum()) > 0.0 else x

    class ReadsExtractor(ModuleInfoExtractor):
        MODULE_CLASS = Reads

        def convert_to_nnef(self, g, module, inputs, params):
            return [g.add(inputs[0], inputs[0])]

    model = nn.Sequential(Reads(), nn.Tanh())
    try:
        assert kinds(graph_of(model)) == ["t2n_capture::module_call.ReadsExtractor", "aten::tanh"]
        tracer = TorchModuleTracer(nn.Sequential(nn.Tanh()), args=(X,), find_extractor=lambda module: None)
        assert kinds(TorchModuleIRGraph(tracer)) == ["aten::tanh"]
    finally:
        ReadsExtractor.unregister()


def test_fixed_tensor_list() -> None:
    parts = FixedTensorList(name="parts", data=[TensorVariable("a", X), TensorVariable("b", X)])
    assert list(parts) == list(parts.data)
    split, cat = graph_of(OfFunction(lambda x: torch.cat(torch.split(x, 2, 1), 1))).op_nodes
    assert isinstance(cat.arguments["tensors"], FixedTensorList)
    assert list(cat.arguments["tensors"]) == list(split.outputs)


def test_tensor_variable() -> None:
    made = TensorVariable("w", X, [5, 3], torch.float32)
    assert (made.name, made.data is X, made.shape, made.dtype) == ("w", True, (5, 3), torch.float32)
    assert (X_NODE.shape, X_NODE.dtype, X_NODE.quant) == ((5, 3), torch.float32, None)
    assert (UNKNOWN.shape, UNKNOWN.dtype, UNKNOWN._traced_data) == (None, None, None)
    with pytest.raises(InputError, match="quantize_per_tensor"):
        TensorVariable("w", X, None, None, {"scale": 0.1, "zero_point": 3})


def test_edited_data_is_written(tmp_path: Path) -> None:
    graph = graph_of()
    torch.testing.assert_close(run(lowered(graph), tmp_path), NET(X).detach())
    (weight,) = (node for node in graph.data_nodes if node.name == "encode.weight")
    weight.data = NET.encode.weight.detach() * 3
    expected = torch.tanh(X @ NET.encode.weight.T * 3 + NET.encode.bias).detach()
    torch.testing.assert_close(run(lowered(graph), tmp_path), expected)


def test_data_nodes_follow_op_nodes() -> None:
    graph, added = graph_of(), TensorVariable("added", None, (5, 2), torch.float32)
    graph.data_nodes.append(added)
    graph.op_nodes.append(TorchOp("aten::relu", "", graph.outputs, [added], "added"))
    names = ["x", "encode.weight", "encode.bias", "linear", "tanh", "added"]
    assert [node.name for node in graph.data_nodes] == names
    del graph.op_nodes[-2:]
    assert [node.name for node in graph.data_nodes] == names[:4]


@pytest.mark.parametrize("place", ["graph", "captured", "post_capture"])
def test_edited_graph_is_written(place: str, tmp_path: Path) -> None:
    class Editing(TractNNEF):
        def post_capture(self, graph: Any) -> None:
            with_sigmoid(graph)

    graph, export = graph_of(), ModelExport(NET, X)
    if place != "post_capture":
        with_sigmoid(graph if place == "graph" else export.captured.graph)
    target = Editing(NEWEST) if place == "post_capture" else TARGET
    torch.testing.assert_close(run(lowered(graph) if place == "graph" else export.lower(target), tmp_path), EDITED)


@pytest.mark.parametrize("realised", [True, False])
def test_new_result_is_realised_before_the_export(realised: bool, tmp_path: Path) -> None:
    class Editing(TractNNEF):
        def post_capture(self, graph: Any) -> None:
            op = TorchOp("aten::sigmoid", "", graph.outputs, [TensorVariable("new", None, None, None)], "new")
            graph.op_nodes.append(op)
            graph.outputs = list(op.outputs)
            if realised:
                assert op.realise_output_type_and_size() == ((torch.float32, (5, 2)),)

    export = ModelExport(NET, X)
    if realised:
        result = run(export.lower(Editing(NEWEST)), tmp_path)
        torch.testing.assert_close(result, torch.sigmoid(NET(X)).detach())
    else:
        with pytest.raises(InputError, match="realise_output_type_and_size"):
            export.lower(Editing(NEWEST))


def test_tracer_takes_module_traced_module_fn_name_and_args() -> None:
    traced = torch.jit.trace(NET, X)
    tracer = TorchModuleTracer(nn.Tanh(), traced, args=(X,))
    assert tracer.traced_module is traced
    assert kinds(TorchModuleIRGraph(tracer)) == ["aten::linear", "aten::tanh"]
    by_name = TorchModuleTracer(NET, None, "encode_only", (X,))
    assert kinds(TorchModuleIRGraph(by_name)) == ["aten::linear", "aten::add.Tensor"]
    for message, arguments in {
        "args=": (NET, (X,)),
        "no method `absent`": (NET, None, "absent", (X,)),
        "example inputs": (NET,),
        "quantise it in the model": (NET, None, "forward", (torch.quantize_per_tensor(X, 0.1, 0, torch.quint8),)),
    }.items():
        with pytest.raises(InputError, match=message):
            TorchModuleTracer(*arguments)


def test_torch_graph_is_the_graph_of_pytorch() -> None:
    script = torch.jit.trace_module(NET, {"forward": X, "encode_only": X})
    for name, last in {"forward": "aten::tanh", "encode_only": "aten::add"}.items():
        graph = TorchModuleTracer(NET, script, name, (X,)).torch_graph
        assert isinstance(graph, torch.Graph)
        assert [node.kind() for node in graph.nodes() if node.kind().startswith("aten")] == [last]


def test_traced_module_is_traced_once() -> None:
    calls: list[int] = []
    tracer = TorchModuleTracer(OfFunction(lambda x: calls.append(1) or torch.tanh(x)), args=(X,))
    assert calls == []
    assert tracer.traced_module is tracer.traced_module
    assert calls == [1]
    torch.testing.assert_close(tracer.traced_module(X), (torch.tanh(X),))


def test_failed_trace() -> None:
    def fail(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no such input")

    with pytest.raises(T2NErrorTorchJitTraceFailed, match="no such input"):
        _ = TorchModuleTracer(OfFunction(fail), args=(X,)).traced_module


def test_torch_op() -> None:
    op = TorchOp("aten::softmax.int", "head", [X_NODE, 1], [UNKNOWN], "head_softmax", None, None)
    assert (op.kind, op.module_path, op.scope, op.call_name) == ("aten::softmax.int", "head", "head_softmax", None)
    assert (op.inputs, op.outputs, op.op_ref) == ((X_NODE,), (UNKNOWN,), torch.ops.aten.softmax.int)
    assert op.arguments == {"self": X_NODE, "dim": 1, "dtype": None}
    assert str(op).startswith("y: None[?] = aten::softmax.int(self=x, dim=1, dtype=None)")
    torch.testing.assert_close(op.call_op(), torch.softmax(X, 1))


@pytest.mark.parametrize("op_ref", [torch.softmax, nn.functional.softmax, torch.Tensor.softmax, torch.ops.aten.softmax])
def test_op_ref_may_be_a_function_of_pytorch(op_ref: Any) -> None:
    op = TorchOp("aten::softmax.int", "", [X_NODE, 1], [UNKNOWN], "softmax", op_ref, None)
    assert op.op_ref is torch.ops.aten.softmax.int
    torch.testing.assert_close(op.call_op(), torch.softmax(X, 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("relu", "", [X_NODE], [UNKNOWN], ""), "aten::relu"),
        (("aten::softmax.int", "", [X_NODE], [UNKNOWN], ""), "lacks its argument dim"),
        (("aten::relu", "", [X_NODE, 1], [UNKNOWN], ""), "takes 1 arguments, not 2"),
        (("aten::relu", "", [X_NODE], [UNKNOWN], "", torch.tanh), r"torch\.ops\.aten\.relu\.default"),
        (("aten::relu", "", [X_NODE], [UNKNOWN], "", lambda x: x.relu()), r"nor PyTorch's function relu"),
        (("aten::relu", "", [X_NODE], [UNKNOWN], "", None, "forward"), "leave call_name out"),
    ],
)
def test_wrong_torch_op(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TorchOp(*arguments)


def test_call_op() -> None:
    torch.testing.assert_close(graph_of().op_nodes[-1].call_op(), NET(X).detach())
    flat = OfFunction(lambda x: x.reshape(x.shape[0] * 3))
    graph = TorchModuleIRGraph(TorchModuleTracer(flat, args=(X,), dynamic_axes={"x": {0: "B"}}))
    torch.testing.assert_close(graph.op_nodes[-1].call_op(), X.flatten())
    torch.testing.assert_close(graph.op_nodes[-1].call_op(X[:2]), X[:2].flatten())
    a, b = (TensorVariable(name, None, (2, 3), torch.float32) for name in "ab")
    with pytest.raises(InputError, match=r"aten::mm refuses these tensors: .*cannot be multiplied"):
        TorchOp("aten::mm", "", [a, b], [UNKNOWN], "").call_op(torch.ones(2, 3), torch.ones(2, 3))
    with pytest.raises(InputError, match="give call_op the tensors"):
        TorchOp("aten::relu", "", [a], [UNKNOWN], "").call_op()


def test_realise_output_type_and_size() -> None:
    for x, has_data in ((X_NODE, True), (TensorVariable("x", None, (5, 3), torch.float32, None, X), False)):
        y = TensorVariable("y", None, None, None)
        assert str(y) == "y: None[?]"
        TorchOp("aten::argmax", "", [x, 1], [y]).realise_output_type_and_size()
        assert (str(y), y.data is not None) == ("y: int64[5]", has_data)
    graph = TorchModuleIRGraph(TorchModuleTracer(NET, args=(X,), dynamic_axes={"x": {0: "B"}}))
    assert [str(value.shape[0]) for value in graph.outputs] == ["B"]
    with pytest.raises(InputError, match="dynamic"):
        TorchOp("aten::relu", "", graph.outputs, [UNKNOWN]).realise_output_type_and_size()


@pytest.mark.parametrize("module", [ir, tracer_module])
def test_examples_in_docstrings(module: Any) -> None:
    names = {"torch": torch, "TorchModuleTracer": TorchModuleTracer, "TorchModuleIRGraph": TorchModuleIRGraph}
    examples = [example for example in doctest.DocTestFinder().find(module, extraglobs=names) if example.examples]
    results = [doctest.DocTestRunner().run(example) for example in examples]
    assert results
    assert sum(result.failed for result in results) == 0
