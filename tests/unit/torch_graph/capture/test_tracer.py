"""Capture: recurrent calls stay whole, sizes symbolic, names readable, in-place writes functional."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from t2n_core.errors import CaptureError, InputError
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.torch_graph.capture.tracer import CapturedModel, TorchModuleTracer, bind_inputs
from tests.nets import net_of


def capture(model: nn.Module, args: object, axes: object = None) -> CapturedModel:
    inputs = bind_inputs(model, args)
    return TorchModuleTracer(model.eval(), args=inputs, dynamic_axes=axes).trace()  # type: ignore[arg-type]


class Functional(nn.Module):
    """Calls torch.lstm itself."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.LSTM(4, 6, bidirectional=True, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        zeros = torch.zeros(2, x.shape[0], 6)
        return torch.lstm(x, (zeros, zeros), self.net._flat_weights, True, 1, 0.0, False, True, True)[0]


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (nn.LSTM(4, 6, 2, bidirectional=True, batch_first=True), "aten::lstm.input"),
        (nn.LSTM(4, 6, proj_size=3, batch_first=True), "aten::lstm.input"),
        (nn.GRU(4, 6, batch_first=True), "aten::gru.input"),
        (nn.RNN(4, 6, batch_first=True), "aten::rnn_tanh.input"),
        (nn.RNN(4, 6, nonlinearity="relu", batch_first=True), "aten::rnn_relu.input"),
        (Functional(), "aten::lstm.input"),
    ],
    ids=["lstm", "lstm-proj", "gru", "tanh", "relu", "functional"],
)
def test_a_recurrent_call_is_one_node_with_symbolic_sizes(model: nn.Module, kind: str) -> None:
    name = "x" if isinstance(model, Functional) else "input"
    axes = {"x": {0: "B", 1: "T"}} if isinstance(model, Functional) else None
    captured = capture(model, {name: torch.randn(3, 5, 4)}, axes)
    assert [op.kind for op in captured.graph.op_nodes].count(kind) == 1
    captured = capture(model, (torch.randn(3, 5, 4),), {name: {0: "B", -2: "T"}})
    (net,) = [op for op in captured.graph.op_nodes if op.kind == kind]
    assert net.outputs[0] is not None
    assert net.outputs[0].shape[:2] == (symbol("B"), symbol("T"))
    assert captured.symbols == {"B": 3, "T": 5}


@pytest.mark.parametrize("cell", [nn.LSTMCell(4, 6), nn.GRUCell(4, 6), nn.RNNCell(4, 6)], ids=["lstm", "gru", "rnn"])
def test_a_cell_is_one_node(cell: nn.Module) -> None:
    captured = capture(cell, (torch.randn(3, 4),), {"input": {0: "B"}})
    assert sum(op.kind.endswith("_cell") for op in captured.graph.op_nodes) == 1


def test_capture_does_not_grow_with_the_sequence() -> None:
    net = nn.LSTM(4, 6, 2, bidirectional=True)
    counts = {steps: len(capture(net, (torch.randn(steps, 3, 4),)).graph.op_nodes) for steps in (5, 2000)}
    assert counts[5] == counts[2000] < 10


def test_in_place_writes_become_values() -> None:
    class Writes(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            y[:, 1:3].mul_(3.0)
            return y.relu_()

    kinds = [op.kind for op in capture(Writes(), (torch.randn(2, 5),)).graph.op_nodes]
    assert not [k for k in kinds if k.split(".")[0].endswith("_")]
    assert "aten::relu" in kinds


def test_origins_name_module_line_and_code() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(4, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(self.inner(x))

    linear, tanh = capture(Outer(), (torch.randn(2, 4),)).graph.op_nodes
    assert linear.module_path == "inner.0"
    assert tanh.origin is not None
    assert "test_tracer.py:" in tanh.origin.source
    assert "`return torch.tanh(self.inner(x))`" in tanh.origin.source


def test_tied_weights_are_one_tensor() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    assert len(capture(model, (torch.randn(2, 4),)).graph.weights) == 3


def test_axes_that_must_be_equal_need_one_symbol() -> None:
    class Add(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    inputs = (torch.randn(5, 4), torch.randn(5, 4))
    assert capture(Add(), inputs, {"x": {0: "T"}, "y": {0: "T"}}).symbols == {"T": 5}
    with pytest.raises(CaptureError, match="must be equal"):
        capture(Add(), inputs, {"x": {0: "A"}, "y": {0: "B"}})


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (torch.randn(2, 4), ("x",)),
        ((torch.randn(2, 4), torch.randn(2, 4)), ("x", "y")),
        ({"x": torch.randn(2, 4)}, ("x",)),
        ({"y": torch.randn(2, 4), "x": torch.randn(2, 4)}, ("y", "x")),
        ((torch.randn(2, 4), [torch.randn(2, 4), torch.randn(2, 4)]), ("x", "y_0", "y_1")),
    ],
    ids=["tensor", "tuple", "keyword", "named", "nested"],
)
def test_forms_of_arguments(args: object, names: tuple[str, ...]) -> None:
    class Any(nn.Module):
        def forward(self, x: torch.Tensor, y: object = None) -> torch.Tensor:
            return x

    assert bind_inputs(Any(), args).names == names


class Difference(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a - 2 * b


ONE, TEN = torch.ones(2), torch.full((2,), 10.0)


@pytest.mark.parametrize(
    ("model", "inputs", "input_names"),
    [
        (Difference(), {"a": ONE, "b": TEN}, None),
        (Difference(), {"b": TEN, "a": ONE}, None),
        (Difference(), {"b": TEN, "a": ONE}, ["a", "b"]),
        (Difference(), {"x": ONE, "y": TEN}, ["x", "y"]),
        (Difference(), {"y": TEN, "x": ONE}, ["x", "y"]),
        (net_of(lambda _, *all: all[0] - 2 * all[1]), {"x": ONE, "y": TEN}, None),
        (net_of(lambda _, **arguments: arguments["a"] - 2 * arguments["b"]), {"b": TEN, "a": ONE}, None),
    ],
    ids=[
        "in order",
        "out of order",
        "in order of the names",
        "renamed",
        "renamed and out of order",
        "any number",
        "keywords",
    ],
)
def test_inputs_by_name_are_bound_by_name(model: nn.Module, inputs: dict[str, torch.Tensor], input_names: Any) -> None:
    bound = bind_inputs(model, inputs, input_names=input_names)
    assert sorted(bound.names) == sorted(inputs)
    assert all(tensor is inputs[name] for name, tensor in zip(bound.names, bound.tensors, strict=True))
    torch.testing.assert_close(model(*bound.args, **bound.kwargs), ONE - 2 * TEN)


@pytest.mark.parametrize(
    ("inputs", "input_names"),
    [
        ({"x": ONE, "y": TEN}, None),
        ({"b": ONE, "a_typo": TEN}, None),
        ({"b": ONE, "a_typo": TEN}, ["b", "a_typo"]),
        ({"x": ONE, "y": TEN}, ["x", "z"]),
    ],
)
def test_a_name_that_is_no_parameter_is_refused(inputs: dict[str, torch.Tensor], input_names: Any) -> None:
    with pytest.raises(InputError, match=r"Difference has no parameter .*; it has a, b"):
        bind_inputs(Difference(), inputs, input_names=input_names)


def test_duplicate_names_are_refused() -> None:
    class Two(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x

    with pytest.raises(InputError, match="not unique"):
        bind_inputs(Two(), (torch.randn(2), torch.randn(2)), input_names=["a", "a"])


def test_data_dependent_control_flow_is_a_capture_error() -> None:
    with pytest.raises(CaptureError):
        capture(net_of(lambda _, x: x if x.sum() > 0 else -x), (torch.randn(2, 4),))


class Positions(nn.Module):
    """Looks its positions up in a table of 16."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("places", torch.arange(16)[None])
        self.table = nn.Embedding(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table(self.places[:, : x.shape[1]])


def test_a_table_of_positions_bounds_the_axis() -> None:
    graph = capture(Positions(), {"x": torch.randn(2, 7, 5)}, {"x": {0: "B", 1: "T"}}).graph
    assert graph.outputs[0].shape == (symbol("B"), symbol("T", 1, 16), 5)
    (slice_node,) = [op for op in graph.op_nodes if op.kind == "aten::slice.Tensor" and op.arguments["dim"] == 1]
    assert slice_node.outputs[0] is not None
    assert slice_node.outputs[0].shape == (1, symbol("T", 1, 16))  # and no minimum of T and 16


class OnesLike(nn.Module):
    """Makes a tensor from one whose numbers are known."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        constant = torch.tensor([3, 4])
        return x + constant.new_ones((2,), dtype=torch.float32)


def test_new_tensors_of_known_ones_are_captured() -> None:
    assert capture(OnesLike(), torch.randn(3, 2)).graph.outputs[0].shape == (3, 2)


class RelativePlaces(nn.Module):
    """Two tables of relative places, each written in place from counted numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            counted = torch.arange(4)
            places = (counted[:, None] - counted[None, :]).contiguous()
            places[:, 0] += 3
            places[:, 1] *= 2
            x = x + places
        return x


def test_counted_numbers_may_be_written_in_place_twice() -> None:
    graph = capture(RelativePlaces(), torch.randn(4, 4)).graph
    assert not [op for op in graph.op_nodes if op.op_ref._schema.is_mutable]
