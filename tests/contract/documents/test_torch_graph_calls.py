"""Document 001, torch_graph, continued: TorchModuleTracer and TorchOp, one test for each statement, in its order."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core.errors import CaptureError, InputError
from t2n_core.torch_graph import (
    T2NErrorTorchJitTraceFailed,
    TensorVariable,
    TorchModuleIRGraph,
    TorchModuleTracer,
    TorchOp,
)
from t2n_core.torch_graph.capture import tracer as tracer_module
from t2n_core.torch_graph.graph import ir
from tests.contract.documents.torch_graphs import NET, X, graph_of, kinds

DIFFERS = {
    "args are passed through maybe_quantize_args_tensor": "archives take no quantised inputs: a quantised model holds "
    "the operator that quantises, and takes float tensors",
}
"""Item -> why it does not hold as written, and what happens instead."""


def test_tracer_signature() -> None:
    """TorchModuleTracer takes module, traced_module=None, fn_name="forward" and args=None."""
    parameters = inspect.signature(TorchModuleTracer).parameters
    of_the_document = {"traced_module": None, "fn_name": "forward", "args": None}
    assert list(parameters)[:4] == ["module", *of_the_document]
    assert {name: parameters[name].default for name in of_the_document} == of_the_document
    with pytest.raises(InputError, match="args="):
        TorchModuleTracer(NET, (X,))  # type: ignore[arg-type]


def test_the_class_of_a_module_reroutes_it() -> None:
    """The original module is passed, so that the classes of its modules lead to their extractors."""
    seen: list[type] = []
    TorchModuleTracer(NET, args=(X,), find_extractor=lambda module: seen.append(type(module))).trace()  # type: ignore[func-returns-value]
    assert nn.Linear in seen


def test_tracer_uses_a_trace_that_is_given() -> None:
    """A traced module that is given is used again."""
    traced = torch.jit.trace(NET, X)
    tracer = TorchModuleTracer(nn.Tanh(), traced, args=(X,))
    assert tracer.traced_module is traced
    assert kinds(TorchModuleIRGraph(tracer)) == ["aten::linear", "aten::tanh"]


def test_tracer_follows_another_method() -> None:
    """fn_name is the method that is traced."""
    assert kinds(TorchModuleIRGraph(TorchModuleTracer(NET, None, "encode_only", (X,)))) == [
        "aten::linear",
        "aten::add.Tensor",
    ]
    with pytest.raises(InputError, match="no method `absent`"):
        TorchModuleTracer(NET, None, "absent", (X,))


def test_tracer_takes_the_arguments() -> None:
    """args are the arguments of the trace."""
    assert graph_of(NET, X[:2]).inputs[0].shape == (2, 3)
    with pytest.raises(InputError, match="example inputs"):
        TorchModuleTracer(NET)


def test_quantised_arguments_differs() -> None:
    """args are passed through maybe_quantize_args_tensor."""
    with pytest.raises(InputError, match="quantise it in the model"):
        TorchModuleTracer(NET, args=(torch.quantize_per_tensor(X, 0.1, 0, torch.quint8),))
    assert "args are passed through maybe_quantize_args_tensor" in DIFFERS


def test_torch_graph_is_pytorchs_own() -> None:
    """torch_graph is the graph object of PyTorch, of the traced module."""
    traced = torch.jit.trace(NET, X)
    tracer = TorchModuleTracer(NET, traced, args=(X,))
    assert isinstance(tracer.torch_graph, torch.Graph)
    assert str(tracer.torch_graph) == str(traced.graph)


def test_torch_graph_of_another_method() -> None:
    """torch_graph is the graph of the method fn_name."""
    script = torch.jit.trace_module(NET, {"forward": X, "encode_only": X})
    for name, last in {"forward": "aten::tanh", "encode_only": "aten::add"}.items():
        graph = TorchModuleTracer(NET, script, name, (X,)).torch_graph
        assert [node.kind() for node in graph.nodes() if node.kind().startswith("aten")] == [last]


def test_traced_module_is_lazy() -> None:
    """traced_module is computed when it is first read."""
    calls: list[int] = []

    class Counting(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            calls.append(1)
            return torch.tanh(x)

    tracer = TorchModuleTracer(Counting(), args=(X,))
    assert calls == []
    traced = tracer.traced_module
    assert tracer.traced_module is traced
    assert calls == [1]
    torch.testing.assert_close(traced(X), (torch.tanh(X),))


def test_a_failed_trace_has_the_named_error() -> None:
    """A RuntimeError of torch.jit.trace is raised as T2NErrorTorchJitTraceFailed."""

    class Failing(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no such input")

    with pytest.raises(T2NErrorTorchJitTraceFailed, match="no such input"):
        _ = TorchModuleTracer(Failing(), args=(X,)).traced_module
    assert T2NErrorTorchJitTraceFailed is CaptureError


X_NODE = TensorVariable("x", X, None, None)
Y_NODE = TensorVariable("y", None, None, None)
SOFTMAX = TorchOp("aten::softmax.int", "head", [X_NODE, 1], [Y_NODE], "head_softmax", None, None)


def test_torch_op_is_a_dataclass() -> None:
    """TorchOp is a dataclass."""
    assert dataclasses.is_dataclass(TorchOp)


def test_torch_op_signature() -> None:
    """TorchOp takes kind, module_path, inputs, outputs, scope, op_ref and call_name."""
    names = ["kind", "module_path", "inputs", "outputs", "scope", "op_ref", "call_name"]
    assert list(inspect.signature(TorchOp).parameters)[:7] == names
    assert str(SOFTMAX).startswith("y: None[?] = aten::softmax.int(self=x, dim=1, dtype=None)")


def test_torch_op_kind() -> None:
    """TorchOp.kind names the operator."""
    assert SOFTMAX.kind == "aten::softmax.int"
    with pytest.raises(InputError, match="aten::relu"):
        TorchOp("relu", "", [X_NODE], [Y_NODE], "", None, None)


def test_torch_op_module_path() -> None:
    """TorchOp.module_path is the path of the module."""
    assert SOFTMAX.module_path == "head"
    assert graph_of().op_nodes[0].module_path == "encode"


def test_torch_op_inputs() -> None:
    """TorchOp.inputs are data nodes."""
    assert SOFTMAX.inputs == (X_NODE,)
    with pytest.raises(InputError, match="lacks its argument dim"):
        TorchOp("aten::softmax.int", "", [X_NODE], [Y_NODE], "", None, None)
    with pytest.raises(InputError, match="takes 1 arguments, not 2"):
        TorchOp("aten::relu", "", [X_NODE, 1], [Y_NODE], "", None, None)


def test_torch_op_outputs() -> None:
    """TorchOp.outputs are data nodes."""
    assert SOFTMAX.outputs == (Y_NODE,)


def test_torch_op_scope() -> None:
    """TorchOp.scope names the operation."""
    assert SOFTMAX.scope == "head_softmax"
    assert [op.scope for op in graph_of().op_nodes] == ["linear", "tanh"]


def test_torch_op_op_ref() -> None:
    """TorchOp.op_ref is the callable."""
    assert SOFTMAX.op_ref is torch.ops.aten.softmax.int
    with pytest.raises(InputError, match=r"torch\.ops\.aten\.relu\.default"):
        TorchOp("aten::relu", "", [X_NODE], [Y_NODE], "", torch.relu, None)


def test_torch_op_call_name() -> None:
    """TorchOp.call_name is optional."""
    assert SOFTMAX.call_name is None
    with pytest.raises(InputError, match="leave call_name out"):
        TorchOp("aten::relu", "", [X_NODE], [Y_NODE], "", None, "forward")


def test_call_op_of_tensors_that_do_not_fit() -> None:
    """Tensors that the operator refuses are an error of this package, with PyTorch's reason."""
    node = TorchOp("aten::mm", "", [TensorVariable(n, None, (2, 3), torch.float32) for n in "ab"], [Y_NODE], "")
    with pytest.raises(InputError, match=r"aten::mm refuses these tensors: .*cannot be multiplied"):
        node.call_op(torch.ones(2, 3), torch.ones(2, 3))


def test_call_op_computes_from_traced_inputs() -> None:
    """call_op produces the output from traced inputs, by a call of PyTorch."""
    torch.testing.assert_close(graph_of().op_nodes[-1].call_op(), NET(X).detach())
    with pytest.raises(InputError, match="give call_op the tensors"):
        TorchOp("aten::relu", "", [TensorVariable("a", None, (2,), torch.float32)], [Y_NODE], "").call_op()


def test_call_op_with_dynamic_sizes() -> None:
    """call_op takes the sizes of the traced inputs."""

    class Flat(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.reshape(x.shape[0] * 3)

    graph = TorchModuleIRGraph(TorchModuleTracer(Flat(), args=(X,), dynamic_axes={"x": {0: "B"}}))
    torch.testing.assert_close(graph.op_nodes[-1].call_op(), X.flatten())
    torch.testing.assert_close(graph.op_nodes[-1].call_op(X[:2]), X[:2].flatten())


def test_call_op_has_all_arguments_in_the_order_of_parameters() -> None:
    """The arguments of call_op are those of the operator, in the order of its parameters."""
    torch.testing.assert_close(SOFTMAX.call_op(), torch.softmax(X, 1))


def test_arguments_are_given_without_keywords() -> None:
    """Arguments are given by their place, not by keyword as in torch.onnx."""
    assert TorchOp("aten::softmax.int", "", [X_NODE, 0], [Y_NODE]).arguments == {
        "self": X_NODE,
        "dim": 0,
        "dtype": None,
    }


def test_realise_finds_type_and_shape() -> None:
    """realise_output_type_and_size traces the output and finds its type and shape."""
    x = TensorVariable("x", None, (5, 3), torch.float32, None, X)
    y = TensorVariable("y", None, None, None)
    TorchOp("aten::argmax", "", [x, 1], [y]).realise_output_type_and_size()
    assert (y.shape, y.dtype, y.data) == ((5,), torch.int64, None)
    graph = TorchModuleIRGraph(TorchModuleTracer(NET, args=(X,), dynamic_axes={"x": {0: "B"}}))
    op = TorchOp("aten::relu", "", graph.outputs, [TensorVariable("z", None, None, None)])
    with pytest.raises(InputError, match="dynamic"):
        op.realise_output_type_and_size()


def test_realise_finds_constants() -> None:
    """realise_output_type_and_size realises constants."""
    y = TensorVariable("y", None, None, None)
    TorchOp("aten::relu", "", [X_NODE], [y]).realise_output_type_and_size()
    torch.testing.assert_close(y.data, torch.relu(X))


@pytest.mark.parametrize("module", [ir, tracer_module])
def test_examples_in_docstrings_run(module: Any) -> None:
    """The examples in docstrings run."""
    names = {"torch": torch, "TorchModuleTracer": TorchModuleTracer, "TorchModuleIRGraph": TorchModuleIRGraph}
    examples = [e for e in doctest.DocTestFinder().find(module, extraglobs=names) if e.examples]
    results = [doctest.DocTestRunner().run(example) for example in examples]
    assert results
    assert sum(result.failed for result in results) == 0
