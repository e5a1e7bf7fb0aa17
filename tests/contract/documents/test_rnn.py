"""Document 002, rnn: one test for each of its statements, in its order."""

from __future__ import annotations

import inspect
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import LowerError
from t2n_core.op import custom_extractors
from t2n_core.op.aten import rnn
from t2n_core.op.fragment import fragment_files
from t2n_core.op.registry import load_default, op

TARGET = TractNNEF("0.23.9")
DIFFERS = {
    "traced cells are byte-identical": "torch.jit.trace records the steps of a cell in place of its operator, and the "
    "archive holds these",
    "lstm_cell does the products in the fragment": "they are statements before the call, so that engines fold the "
    "weights' slices; the fragment computes the gates and states",
}
"""Item -> why it does not hold as written, and what happens instead."""
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


class Holder(nn.Module):
    """Holds a net under the name `net`, and returns its first result."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.net(x)
        return found[0] if isinstance(found, tuple) else found  # type: ignore[no-any-return]


class FirstOf(nn.Module):
    """The same for TorchScript, which compiles no branch on the type of a result."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.net(x)[0]


class Of(FirstOf):
    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.net(x)


def through(name: str, way: str) -> Any:
    """Return the model with the net of a name, reached in one way."""
    torch.manual_seed(3)
    net = {**NETS, **CELLS}[name]()
    packet = getattr(torch.ops.aten, name)
    overloads = {"function": getattr(torch, name), "aten": packet.default if name in CELLS else packet.input}
    if way in overloads:
        net.__class__ = type(net.__class__.__name__, (type(net),), {"forward": functional(name, overloads[way])})
    if way == "script":
        return torch.jit.script((Of if name in CELLS and name != "lstm_cell" else FirstOf)(net).eval())
    model = Holder(net).eval()
    return torch.jit.trace(model, example(name)) if way == "traced" else model


def example(name: str) -> torch.Tensor:
    torch.manual_seed(4)
    return torch.randn(4, 5) if name in CELLS else torch.randn(4, 6, 5)


def export_of(name: str, way: str = "module", scheme: str = "natural") -> ModelExport:
    options: Any = {"capture": "trace"} if way == "trace" else {}
    model = through(name, way)
    return ModelExport(model, {"x": example(name)}, output_names=["y"], nnef_variable_naming_scheme=scheme, **options)


def bytes_of(name: str, way: str, folder: Path, scheme: str = "natural") -> bytes:
    return export_of(name, way, scheme).to(TARGET, folder / "m.tar").archive.read_bytes()


def text_of(name: str, folder: Path, target: Any = TARGET) -> str:
    """Export a net, prove it in the engine, and return the text of its graph."""
    result = export_of(name).to(target, folder / "proven.tar")
    result.assert_parity()
    with tarfile.open(result.archive) as tar:
        stream = tar.extractfile("graph.nnef")
        assert stream is not None
        return stream.read().decode()


def test_the_module_is_the_home_of_the_export_math() -> None:
    """The module rnn is the home of the handlers."""
    assert {rule.function.__name__ for rule in load_default() if rule.key == "aten::lstm.input"} >= {rnn.lstm.__name__}


def test_the_extractors_have_the_names_of_the_document() -> None:
    """custom_extractors has LSTMExtractor, GRUExtractor, RNNExtractor and LSTMCellExtractor."""
    classes = {
        "LSTMExtractor": nn.LSTM,
        "GRUExtractor": nn.GRU,
        "RNNExtractor": nn.RNN,
        "LSTMCellExtractor": nn.LSTMCell,
    }
    assert {name: getattr(custom_extractors, name).MODULE_CLASS for name in classes} == classes


@pytest.mark.parametrize("name", NETS)
def test_nets_are_byte_identical_from_every_entry_point(name: str, tmp_path: Path) -> None:
    """Exports are byte-identical whatever the entry point: module, functional, aten, trace, with natural names too."""
    ways = ["module", "function", "aten", "trace", "traced"]
    assert len({bytes_of(name, way, tmp_path) for way in ways}) == 1
    # TorchScript keeps no module path, so natural names are shorter there
    assert len({bytes_of(name, way, tmp_path, "numeric") for way in [*ways, "script"]}) == 1


@pytest.mark.parametrize("name", CELLS)
def test_cells_are_byte_identical_from_every_entry_point(name: str, tmp_path: Path) -> None:
    """Exports of cells are byte-identical whatever the entry point: module, functional, aten; natural names too."""
    ways = ["module", "function", "aten"]
    assert len({bytes_of(name, way, tmp_path) for way in ways}) == 1
    assert len({bytes_of(name, way, tmp_path, "numeric") for way in [*ways, "script"]}) == 1


@pytest.mark.parametrize("name", CELLS)
def test_traced_cells_differs(name: str, tmp_path: Path) -> None:
    """Exports of traced cells are byte-identical to those of modules."""
    export = export_of(name, "trace")
    assert f"aten::{name}" not in [node.kind for node in export.captured.graph.op_nodes]
    export.to(TARGET, tmp_path / "m.tar").assert_parity()
    assert "traced cells are byte-identical" in DIFFERS


def test_layers_directions_batch_first_and_states_are_set_up(tmp_path: Path) -> None:
    """emit_rnn_via_fragment sets up layers, directions, batch_first and states, and drives a fragment for each."""
    text = text_of("lstm", tmp_path)
    assert text.count("= tract_core_scan(") == 4
    assert text.count("fragment lstm_step") == 1


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_adapters_and_tensor_params(kind: str) -> None:
    """_LSTMAtenAdapter and its like have attributes, of which _lstm_tensor_params and its like read the weights."""
    adapter, read = getattr(rnn, f"_{kind}AtenAdapter"), getattr(rnn, f"_{kind.lower()}_tensor_params")
    (forwards, backwards) = read(adapter("abcdefgh", True, 1, bidirectional=True))
    assert (forwards.w_ih, forwards.w_hh, forwards.b_ih, forwards.b_hh) == tuple("abcd")
    assert (backwards.w_ih, backwards.w_hh, backwards.b_ih, backwards.b_hh) == tuple("efgh")


@pytest.mark.parametrize("kind", ["lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input", *CELLS])
def test_every_operator_has_a_handler(kind: str) -> None:
    """aten::lstm, gru, rnn_tanh and rnn_relu have handlers, and so have their cells."""
    rule = load_default().find(f"aten::{kind}", TARGET.spec, TARGET.writing)
    assert rule is not None
    assert rule.function is getattr(rnn, kind.removesuffix(".input"))


@pytest.mark.parametrize("version", ["0.21.19", "0.23.9"])
@pytest.mark.parametrize("name", CELLS)
def test_cells_are_one_call_of_a_fragment(name: str, version: str) -> None:
    """Each cell is routed through a fragment of one call: lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell."""
    assert f"{name}.nnef" in {file.name for file in fragment_files()}
    graph = export_of(name).lower(TractNNEF(version))
    (fragment,) = (fragment for fragment in graph.fragments if fragment.startswith(name))
    assert [operation.name for operation in graph.operations].count(fragment) == 1


def test_emit_gru_cell_via_fragment_emits_a_single_call(tmp_path: Path) -> None:
    """emit_gru_cell_via_fragment emits a single call of the fragment gru_cell."""
    assert text_of("gru_cell", tmp_path).count("y = gru_cell_7(") == 1


def test_gru_keeps_its_biases_apart(tmp_path: Path) -> None:
    """A GRU keeps b_ih and b_hh apart, since the new gate's are split by the reset gate."""
    text = text_of("gru_cell", tmp_path, TractNNEF("0.21.19"))
    assert "add(net_bias_ih, net_bias_hh)" not in text
    assert text.count("unsqueeze(net_bias_ih") == text.count("unsqueeze(net_bias_hh") == 1


def test_emit_lstm_cell_via_fragment_emits_a_single_call(tmp_path: Path) -> None:
    """emit_lstm_cell_via_fragment emits a single call of the fragment lstm_cell."""
    assert text_of("lstm_cell", tmp_path).count("= lstm_cell_7(") == 1


def test_products_of_the_lstm_cell_differs(tmp_path: Path) -> None:
    """The fragment lstm_cell does the grouped products, adds the bias, and slices the four gates."""
    text = text_of("lstm_cell", tmp_path, TractNNEF("0.21.19"))
    fragment, graph = text.split("graph network")
    assert fragment.count("= slice(x_ifgo") == 4
    assert graph.count("= matmul(") == 2
    assert "lstm_cell does the products in the fragment" in DIFFERS


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_emit_rnn_cell_via_fragment_emits_a_single_call(nonlinearity: str, tmp_path: Path) -> None:
    """emit_rnn_cell_via_fragment emits a single call of the fragment rnn_tanh_cell or rnn_relu_cell."""
    assert text_of(f"rnn_{nonlinearity}_cell", tmp_path).count(f"y = rnn_{nonlinearity}_cell(") == 1


@pytest.mark.parametrize("name", ["lstm_cell", "rnn_tanh_cell", "rnn_relu_cell"])
def test_biases_are_summed(name: str, tmp_path: Path) -> None:
    """The biases of lstm_cell and rnn_*_cell are summed to a single term first."""
    assert "= add(net_bias_ih, net_bias_hh)" in text_of(name, tmp_path, TractNNEF("0.21.19"))


def test_emit_rnn_via_fragment_calls_once_for_each_layer_and_direction(tmp_path: Path) -> None:
    """emit_rnn_via_fragment issues one call for each layer and direction, whatever the variant."""
    for name in ("rnn_tanh", "rnn_relu"):
        text = text_of(name, tmp_path)
        assert text.count(f'body = "{name}_step"') == 1


def test_directions_and_layers_are_joined_internally() -> None:
    """The joining of directions and layers is handled internally."""
    (output,) = export_of("lstm").lower(TARGET).outputs
    assert output.shape == (4, 6, 14)


@pytest.mark.parametrize(
    "name", ["gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"]
)
def test_handlers_are_named_functions(name: str, tmp_path: Path) -> None:
    """gru, gru_cell, lstm, lstm_cell, rnn_relu, rnn_relu_cell, rnn_tanh and rnn_tanh_cell map an operator to NNEF."""
    handler = getattr(rnn, name)
    assert inspect.isfunction(handler)
    assert f"aten::{name}" in str(handler.__doc__)
    assert "[B, " in str(handler.__doc__)
    text_of(name, tmp_path)


def test_gru_cell_has_one_state_and_lstm_cell_two() -> None:
    """hx of gru_cell is one 2D tensor; that of lstm_cell a FixedTensorList of two, and so are its results."""
    for name, count in {"gru_cell": 1, "lstm_cell": 2}.items():
        (node,) = (one for one in export_of(name).captured.graph.op_nodes if one.kind == f"aten::{name}")
        states = node.arguments["hx"] if count == 2 else [node.arguments["hx"]]
        assert [state.rank for state in states] == [2] * count
        assert type(node.arguments["hx"]).__name__ == ("FixedTensorList" if count == 2 else "TensorVariable")
        assert len(node.outputs) == count


@pytest.mark.parametrize("name", [*NETS, *CELLS])
def test_handlers_take_a_node(name: str, tmp_path: Path) -> None:
    """Handlers take (g, node, name_to_tensor, **kwargs), and write what they write by the operator's arguments."""
    rules, key = load_default().copy(), f"aten::{name}{'' if name in CELLS else '.input'}"
    rules.remove(key, "tract")
    called = []

    @op(key, target="tract", registry=rules)
    def handler(g: Any, node: Any, name_to_tensor: Any, **kwargs: Any) -> Any:
        called.append(node.kind)
        return getattr(rnn, name)(g, node, name_to_tensor, **kwargs)

    names: dict[str, Any] = {"output_names": ["y"], "nnef_variable_naming_scheme": "natural"}
    export = ModelExport(through(name, "module"), {"x": example(name)}, rules=rules, **names)
    assert export.to(TARGET, tmp_path / "own.tar").archive.read_bytes() == bytes_of(name, "module", tmp_path)
    assert called == [key]


@pytest.mark.parametrize(
    ("given", "words"),
    [((), "missing a required argument"), ((3,), "missing"), (("node",), "no values"), (("node", {}), "x")],
)
def test_wrong_arguments_of_handlers(given: tuple[Any, ...], words: str) -> None:
    """A handler with other arguments is refused with what is missing."""
    (node,) = (one for one in export_of("gru_cell").captured.graph.op_nodes if one.kind == "aten::gru_cell")
    with pytest.raises(LowerError, match=words):
        rnn.gru_cell(None, *(node if one == "node" else one for one in given))
