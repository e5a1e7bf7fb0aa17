"""Recurrent nets as in torch-to-nnef: equal archives by every way in, and handlers with documented arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import LowerError
from t2n_core.op.aten import rnn
from t2n_core.op.registry import load_default, op
from tests.releases import NEWEST

TARGET = TractNNEF(NEWEST)
NETS: dict[str, Callable[[], Any]] = {
    "lstm": lambda: nn.LSTM(5, 7, 2, bidirectional=True, batch_first=True),
    "gru": lambda: nn.GRU(5, 7, batch_first=True),
    "rnn_tanh": lambda: nn.RNN(5, 7, batch_first=True),
    "rnn_relu": lambda: nn.RNN(5, 7, batch_first=True, nonlinearity="relu"),
}
CELLS: dict[str, Callable[[], Any]] = {
    "lstm_cell": lambda: nn.LSTMCell(5, 7),
    "gru_cell": lambda: nn.GRUCell(5, 7),
    "rnn_tanh_cell": lambda: nn.RNNCell(5, 7),
    "rnn_relu_cell": lambda: nn.RNNCell(5, 7, nonlinearity="relu"),
}
WEIGHTS = ["w_ih", "w_hh", "b_ih", "b_hh"]


class First(nn.Module):
    """Return the first result of `net`; a class without a branch on types, for TorchScript."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)[0]


class Only(First):
    def forward(self, x):
        return self.net(x)


def functional(name: str, overload: Callable[..., Any]) -> Callable[..., Any]:
    """Return a forward that calls an operator with the weights of the module."""

    def forward(self: Any, x: torch.Tensor) -> Any:
        is_cell = name.endswith("_cell")
        shape = (len(x), 7) if is_cell else (self.num_layers * (1 + self.bidirectional), len(x), 7)
        h = torch.zeros(shape)
        state = (h, torch.zeros(shape)) if name.startswith("lstm") else h
        if is_cell:
            return overload(x, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        settings = (self.bias, self.num_layers, 0.0, False, self.bidirectional, self.batch_first)
        return overload(x, state, self._flat_weights, *settings)

    return forward


def example(name: str) -> torch.Tensor:
    torch.manual_seed(4)
    return torch.randn(4, 5) if name in CELLS else torch.randn(4, 6, 5)


def model_of(name: str, way: str = "module") -> Any:
    """Return the model of a name, whose net is reached in one way."""
    torch.manual_seed(3)
    net = {**NETS, **CELLS}[name]()
    packet = getattr(torch.ops.aten, name)
    overloads = {"function": getattr(torch, name), "aten": packet.default if name in CELLS else packet.input}
    if way in overloads:
        net.__class__ = type(net.__class__.__name__, (type(net),), {"forward": functional(name, overloads[way])})
    model = (Only if name in CELLS and name != "lstm_cell" else First)(net).eval()
    if way == "script":
        return torch.jit.script(model)
    return torch.jit.trace(model, example(name)) if way == "traced" else model


def export_of(name: str, way: str = "module", **options: Any) -> ModelExport:
    if way == "trace":
        options["capture"] = "trace"
    return ModelExport(model_of(name, way), {"x": example(name)}, output_names=["y"], **options)


def archive_of(name: str, folder: Path, way: str = "module", **options: Any) -> bytes:
    return export_of(name, way, **options).to(TARGET, folder / "m.tar").archive.read_bytes()


def key_of(name: str) -> str:
    return f"aten::{name}{'' if name in CELLS else '.input'}"


def node_of(name: str) -> Any:
    (node,) = (node for node in export_of(name).captured.graph.op_nodes if node.kind == key_of(name))
    return node


def archive_by(name: str, folder: Path, handler: Callable[..., Any]) -> bytes:
    """Return the archive of a net or cell whose rule for tract is another function."""
    rules = load_default().copy()
    rules.remove(key_of(name), "tract")
    op(key_of(name), target="tract", registry=rules)(handler)
    return archive_of(name, folder, rules=rules)


def archive_emitted(name: str, folder: Path, emit: Callable[..., Any]) -> bytes:
    """Return the archive of a net or cell which `emit(g, node, values)` writes, and which returns its fragments."""

    def handler(g: Any, node: Any, name_to_tensor: Any) -> Any:
        values = dict(name_to_tensor)
        assert [fragment.startswith(name) for fragment in emit(g, node, values)] == [True]
        return [values[output.name] for output in node.outputs]

    return archive_by(name, folder, handler)


def operands(node: Any, values: dict[str, Any], *names: str) -> list[Any]:
    return [rnn.values_of(node.arguments[name], values, "test") for name in names]


@pytest.mark.parametrize("name", [*NETS, *CELLS])
def test_archives_are_identical_by_every_way_in(name: str, tmp_path: Path) -> None:
    """A trace of a cell has the steps of the cell instead of its operator; TorchScript knows no paths of modules."""
    ways = ["module", "function", "aten"] if name in CELLS else ["module", "function", "aten", "trace", "traced"]
    assert len({archive_of(name, tmp_path, way) for way in ways}) == 1
    numeric = {"nnef_variable_naming_scheme": "numeric"}
    assert len({archive_of(name, tmp_path, way, **numeric) for way in [*ways, "script"]}) == 1


@pytest.mark.parametrize("name", CELLS)
def test_cell_in_a_trace(name: str, tmp_path: Path) -> None:
    export = export_of(name, "trace")
    assert key_of(name) not in [node.kind for node in export.captured.graph.op_nodes]
    export.to(TARGET, tmp_path / "m.tar").assert_parity()


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
@pytest.mark.parametrize("name", CELLS)
def test_cell_is_one_call_of_a_fragment(name: str, version: str) -> None:
    graph = export_of(name).lower(TractNNEF(version))
    (fragment,) = (fragment for fragment in graph.fragments if fragment.startswith(name))
    assert [operation.name for operation in graph.operations].count(fragment) == 1


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_adapters_and_tensor_params(kind: str) -> None:
    adapter, read = getattr(rnn, f"_{kind}AtenAdapter"), getattr(rnn, f"_{kind.lower()}_tensor_params")
    forwards, backwards = read(adapter("abcdefgh", True, 1, bidirectional=True))
    assert [getattr(forwards, weight) for weight in WEIGHTS] == list("abcd")
    assert [getattr(backwards, weight) for weight in WEIGHTS] == list("efgh")


@pytest.mark.parametrize("name", [*NETS, *CELLS])
def test_handlers_take_a_node(name: str, tmp_path: Path) -> None:
    """A handler `(g, node, name_to_tensor, **kwargs)` may call the built-in one."""
    rule, called = load_default().find(key_of(name), TARGET.spec, TARGET.writing), []
    assert rule is not None
    assert rule.function is getattr(rnn, name)

    def handler(g: Any, node: Any, name_to_tensor: Any, **kwargs: Any) -> Any:
        called.append(node.kind)
        return getattr(rnn, name)(g, node, name_to_tensor, **kwargs)

    assert archive_by(name, tmp_path, handler) == archive_of(name, tmp_path)
    assert called == [key_of(name)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((), "missing a required argument"), ((3,), "missing"), (("node",), "no values"), (("node", {}), "x")],
)
def test_handlers_refuse_other_arguments(arguments: tuple[Any, ...], message: str) -> None:
    node = node_of("gru_cell")
    with pytest.raises(LowerError, match=message):
        rnn.gru_cell(None, *(node if argument == "node" else argument for argument in arguments))


@pytest.mark.parametrize("name", CELLS)
def test_emitters_of_cells(name: str, tmp_path: Path) -> None:
    def emit(g: Any, node: Any, values: dict[str, Any]) -> Any:
        x, hx, *weights = operands(node, values, "input", "hx", *WEIGHTS)
        kind = name.removesuffix("_cell")
        options = {"nonlinearity": kind.removeprefix("rnn_")} if kind.startswith("rnn") else {}
        emitter = getattr(rnn, f"emit_{'rnn' if options else kind}_cell_via_fragment")
        states = rnn.states_of(hx)
        return emitter(g, values, "net", "float32", 4, 7, x, *states, *weights, *node.outputs, **options)

    assert archive_emitted(name, tmp_path, emit) == archive_of(name, tmp_path)


@pytest.mark.parametrize("name", NETS)
def test_emitter_of_nets(name: str, tmp_path: Path) -> None:
    def emit(g: Any, node: Any, values: dict[str, Any]) -> Any:
        names = ["params", "has_biases", "num_layers", "bidirectional", "batch_first"]
        module = rnn._LSTMAtenAdapter(**dict(zip(names, operands(node, values, *names), strict=True)))
        return rnn.emit_rnn_via_fragment(g, node, values, module, name, ["x"], rnn._lstm_tensor_params, TARGET)

    assert archive_emitted(name, tmp_path, emit) == archive_of(name, tmp_path)


def test_weights_may_be_tensors(tmp_path: Path) -> None:
    """They become variables whose labels begin with `base`."""
    cell = model_of("gru_cell").net

    def emit(g: Any, node: Any, values: dict[str, Any]) -> Any:
        x, h = operands(node, values, "input", "hx")
        weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
        return rnn.emit_gru_cell_via_fragment(g, values, "mine", "float32", 4, 7, x, h, *weights, node.outputs[0])

    assert b"mine_w_ih" in archive_emitted("gru_cell", tmp_path, emit)


@pytest.mark.parametrize(
    ("dtype", "batch", "hidden", "message"),
    [
        ("float16", 4, 7, "nnef_dtype is float16"),
        ("float32", 5, 7, "batch_dim is 5"),
        ("float32", 4, 8, "hidden is 8, and the tensors of this step of gru have 7"),
    ],
)
def test_emitters_refuse_sizes_of_other_tensors(
    dtype: str, batch: int, hidden: int, message: str, tmp_path: Path
) -> None:
    def emit(g: Any, node: Any, values: dict[str, Any]) -> Any:
        x, h, *weights = operands(node, values, "input", "hx", *WEIGHTS)
        return rnn.emit_gru_cell_via_fragment(g, values, "net", dtype, batch, hidden, x, h, *weights, node.outputs[0])

    with pytest.raises(LowerError, match=message):
        archive_emitted("gru_cell", tmp_path, emit)


def test_results_of_emitters_are_optional(tmp_path: Path) -> None:
    def emit(g: Any, node: Any, values: dict[str, Any]) -> Any:
        x, hx, *weights = operands(node, values, "input", "hx", *WEIGHTS)
        before = set(values)
        fragments = rnn.emit_lstm_cell_via_fragment(
            g, values, "net", "float32", 4, 7, x, *hx, *weights, node.outputs[0], None
        )
        assert values.keys() - before == {node.outputs[0].name}
        values[node.outputs[1].name] = hx[1]  # nothing reads it
        return fragments

    assert archive_emitted("lstm_cell", tmp_path, emit) == archive_of("lstm_cell", tmp_path)
