"""Arrays of files, for the inputs and outputs that a graph declares."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_t2n.cli.arrays import as_declared, in_order, read_sets
from t2n_core.errors import InputError
from t2n_core.parity.judging.interface import Port

IO = Path("io.npz")


def test_a_file_may_hold_inputs_and_outputs(tmp_path: Path) -> None:
    path = tmp_path / "io.npz"
    np.savez(path, y=np.ones(2), x=np.zeros(3))
    assert [array.shape for array in in_order(path, ["x"], "input", ["y"])] == [(3,)]
    with pytest.raises(InputError, match="has y, which is no input"):
        in_order(path, ["x"], "input")
    with pytest.raises(InputError, match="has no z and has y, which is no input"):
        in_order(path, ["x", "z"], "input")


@pytest.mark.parametrize(("declared", "dtype"), [("float16", "float16"), ("float", "float32"), ("float64", "float64")])
def test_floats_are_cast_to_the_declared_type(declared: str, dtype: str, capsys: pytest.CaptureFixture[str]) -> None:
    (array,) = as_declared(IO, [np.float32([1.5])], [Port("x", declared)])
    assert (array.dtype, array.tolist()) == (dtype, [1.5])
    message = "" if dtype == "float32" else f"io.npz: `x` is cast from float32 to {dtype}\n"
    assert capsys.readouterr().err == message


def test_what_is_not_stated_is_left_as_it_is() -> None:
    arrays = [np.int32([1]), np.ones(2)]
    assert as_declared(IO, arrays, [Port("n", "int"), Port("x")]) == tuple(arrays)


@pytest.mark.parametrize(
    ("declared", "array"), [("int64", np.int32([1])), ("float", np.int64([1])), ("int", np.ones(1))]
)
def test_another_type_is_refused_with_its_file(declared: str, array: np.ndarray) -> None:
    with pytest.raises(
        InputError, match=rf"io\.npz: `x` is {array.dtype}, and the graph declares (int64|float32|int)$"
    ):
        as_declared(IO, [array], [Port("x", declared)])


def graph(path: Path) -> Any:
    """The names of a graph with one input and two outputs; its definitions are not known."""
    return SimpleNamespace(path=path, names=(["x"], ["y", "z"]), interface=None)


@pytest.mark.parametrize(
    ("arrays", "outputs", "message"),
    [("xyz", [[2.0], [3.0]], ""), ("xy", [], "io.npz: its outputs y are not used: it has no z\n"), ("x", [], "")],
)
def test_outputs_beside_the_inputs_are_expected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arrays: str, outputs: list[list[float]], message: str
) -> None:
    path = tmp_path / "io.npz"
    np.savez(path, **{name: np.ones(1) * "_xyz".index(name) for name in arrays})
    inputs, expected = read_sets(graph(tmp_path / "net.nnef.tgz"), [path])
    assert [[array.tolist() for array in input_set] for input_set in inputs] == [[[1.0]]]
    assert [array.tolist() for output_set in expected for array in output_set] == outputs
    assert capsys.readouterr().err.removeprefix(f"{tmp_path}/") == message
    assert read_sets(graph(tmp_path), []) == (inputs, expected)
    assert capsys.readouterr().err.startswith(f"the inputs are those of {path}\n")


def test_outputs_of_some_sets_only_are_not_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "0.npz", tmp_path / "1.npz"]
    np.savez(files[0], x=np.ones(1), y=np.ones(1), z=np.ones(1))
    np.savez(files[1], x=np.ones(1))
    assert read_sets(graph(tmp_path / "net.nnef.tgz"), files)[1] == []
    assert capsys.readouterr().err == f"{files[0]}: its outputs y, z are not used: other files of inputs have none\n"
