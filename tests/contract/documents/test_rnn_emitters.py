"""Document 002, rnn: the functions that write cells and nets, by the arguments that it states."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from t2n_core import ModelExport
from t2n_core.errors import LowerError
from t2n_core.op.aten import rnn
from t2n_core.op.registry import load_default, op
from tests.contract.documents.test_rnn import CELLS, NETS, TARGET, bytes_of, example, through

COMMON = ["g", "name_to_tensor", "base", "nnef_dtype", "batch_dim", "hidden", "input_ref", "h_prev_ref"]
WEIGHTS = ["w_ih", "w_hh", "b_ih", "b_hh"]
ARGUMENTS = {
    "emit_lstm_cell_via_fragment": [*COMMON, "c_prev_ref", *WEIGHTS, "h_new_tv", "c_new_tv"],
    "emit_gru_cell_via_fragment": [*COMMON, *WEIGHTS, "h_new_tv"],
    "emit_rnn_cell_via_fragment": [*COMMON, *WEIGHTS, "h_new_tv", "nonlinearity"],
    "emit_rnn_via_fragment": [
        "g", "node", "name_to_tensor", "module", "nnef_fragment_name", "argument_names_order", "tensor_params_fn",
        "inference_target", "tensor_params_kwargs",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_of_emitters(name: str) -> None:
    """emit_*_via_fragment take g, name_to_tensor, base, nnef_dtype, batch_dim, hidden and others."""
    assert list(inspect.signature(getattr(rnn, name)).parameters) == ARGUMENTS[name]


def replaced(name: str, folder: Path, write: Callable[..., Any]) -> bytes:
    """Return the archive of a net or cell whose rule is `write(g, node, name_to_tensor)`, which returns nothing."""
    rules, key = load_default().copy(), f"aten::{name}{'' if name in CELLS else '.input'}"
    rules.remove(key, "tract")

    @op(key, target="tract", registry=rules)
    def handler(g: Any, node: Any, name_to_tensor: Any) -> Any:
        values = dict(name_to_tensor)
        found = write(g, node, values)
        assert [one.startswith(name) for one in found] == [True]
        return [values[one.name] for one in node.outputs]

    export = ModelExport(through(name, "module"), {"x": example(name)}, rules=rules, output_names=["y"])
    return export.to(TARGET, folder / "own.tar").archive.read_bytes()


@pytest.mark.parametrize("name", CELLS)
def test_cells_by_their_documented_arguments(name: str, tmp_path: Path) -> None:
    """What they write is what exports write, byte for byte."""

    def write(g: Any, node: Any, values: dict[str, Any]) -> list[str]:
        given = {one: rnn.values_of(node.arguments[one], values, name) for one in ("input", "hx", *WEIGHTS)}
        x, states, weights = given.pop("input"), rnn.states_of(given.pop("hx")), list(given.values())
        kind = name.removesuffix("_cell")
        options = {"nonlinearity": kind.removeprefix("rnn_")} if kind.startswith("rnn") else {}
        emit = getattr(rnn, f"emit_{'rnn' if options else kind}_cell_via_fragment")
        return emit(g, values, "net", "float32", 4, 7, x, *states, *weights, *node.outputs, **options)  # type: ignore[no-any-return]

    assert replaced(name, tmp_path, write) == bytes_of(name, "module", tmp_path)


@pytest.mark.parametrize("name", NETS)
def test_nets_by_their_documented_arguments(name: str, tmp_path: Path) -> None:
    def write(g: Any, node: Any, values: dict[str, Any]) -> list[str]:
        given = {
            one: rnn.values_of(node.arguments[one], values, name)
            for one in ("params", "has_biases", "num_layers", "bidirectional", "batch_first")
        }
        module = rnn._LSTMAtenAdapter(**given)
        return rnn.emit_rnn_via_fragment(g, node, values, module, name, ["x"], rnn._lstm_tensor_params, TARGET)

    assert replaced(name, tmp_path, write) == bytes_of(name, "module", tmp_path)


def test_weights_of_a_cell_may_be_tensors(tmp_path: Path) -> None:
    """Weights that are tensors of PyTorch are variables whose labels begin with `base`."""
    cell = through("gru_cell", "module").net

    def write(g: Any, node: Any, values: dict[str, Any]) -> list[str]:
        x, h = (rnn.values_of(node.arguments[one], values, "gru_cell") for one in ("input", "hx"))
        weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
        return rnn.emit_gru_cell_via_fragment(g, values, "mine", "float32", 4, 7, x, h, *weights, node.outputs[0])

    assert b"mine_w_ih" in replaced("gru_cell", tmp_path, write)


@pytest.mark.parametrize(
    ("dtype", "batch", "hidden", "message"),
    [
        ("float16", 4, 7, "nnef_dtype is float16"),
        ("float32", 5, 7, "batch_dim is 5"),
        ("float32", 4, 8, "hidden is 8, and the tensors of this step of gru have 7"),
    ],
)
def test_documented_arguments_that_do_not_fit(
    dtype: str, batch: int, hidden: int, message: str, tmp_path: Path
) -> None:
    def write(g: Any, node: Any, values: dict[str, Any]) -> list[str]:
        x, h, *weights = (rnn.values_of(node.arguments[one], values, "gru_cell") for one in ("input", "hx", *WEIGHTS))
        return rnn.emit_gru_cell_via_fragment(g, values, "net", dtype, batch, hidden, x, h, *weights, node.outputs[0])

    with pytest.raises(LowerError, match=message):
        replaced("gru_cell", tmp_path, write)


def test_optional_results(tmp_path: Path) -> None:
    """h_new_tv and c_new_tv are optional outputs."""

    def write(g: Any, node: Any, values: dict[str, Any]) -> list[str]:
        x, hx, *weights = (rnn.values_of(node.arguments[one], values, "lstm") for one in ("input", "hx", *WEIGHTS))
        before = dict(values)
        found = rnn.emit_lstm_cell_via_fragment(
            g, values, "net", "float32", 4, 7, x, *hx, *weights, node.outputs[0], None
        )
        assert values.keys() - before.keys() == {node.outputs[0].name}
        values[node.outputs[1].name] = hx[1]  # nobody reads it
        return found

    assert replaced("lstm_cell", tmp_path, write) == bytes_of("lstm_cell", "module", tmp_path)
