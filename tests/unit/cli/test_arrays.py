"""Arrays of files, for the inputs and outputs that a graph declares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_t2n.cli.arrays import as_declared, in_order
from t2n_core.errors import InputError
from t2n_core.parity.judging.interface import Port

IO = Path("io.npz")


def test_a_file_may_hold_inputs_and_outputs(tmp_path: Path) -> None:
    path = tmp_path / "io.npz"
    np.savez(path, y=np.ones(2), x=np.zeros(3))
    assert [one.shape for one in in_order(path, ["x"], "input", ["y"])] == [(3,)]
    with pytest.raises(InputError, match="has y, which is no input"):
        in_order(path, ["x"], "input")
    with pytest.raises(InputError, match="has no z and has y, which is no input"):
        in_order(path, ["x", "z"], "input")


@pytest.mark.parametrize(("declared", "dtype"), [("float16", "float16"), ("float", "float32"), ("float64", "float64")])
def test_floats_are_cast_to_the_declared_type(declared: str, dtype: str, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = as_declared(IO, [np.float32([1.5])], [Port("x", declared)])
    assert (found.dtype, found.tolist()) == (dtype, [1.5])
    said = "" if dtype == "float32" else f"io.npz: `x` is cast from float32 to {dtype}\n"
    assert capsys.readouterr().err == said


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
