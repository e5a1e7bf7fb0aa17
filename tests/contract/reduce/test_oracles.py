"""Oracles of the reducer: the values of a program by the definitions of its operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from t2n_core.nnef.reading.archive import ArchiveContent
from t2n_core.nnef.reading.binding import Signatures
from t2n_core.nnef.reading.parser import read_text
from t2n_core.reduce.oracles import DefinitionsOracle
from t2n_core.reduce.program import Program

HEAD = "version 1.0;\nextension tract_registry tract_core;\nextension tract_symbol N;\n"
X = np.array([[0.5, -2.0, 95.0]], np.float32)


def program(body: str, outputs: str, x: Any = X, **weights: Any) -> Program:
    text = f"{HEAD}graph network(x) -> ({outputs})\n{{\n  x = external(shape = [N, 3]);\n{body}\n}}\n"
    return Program.of(ArchiveContent(read_text(text), weights), [x], Signatures.of("tract"))


def values(one: Program, *names: str) -> Any:
    return DefinitionsOracle(10.0).values(one, names)


def test_values_have_the_data_types_of_the_graph() -> None:
    arrays = values(
        program(
            """
            w = variable(shape = [3], label = "w");
            row = unsqueeze(w, axes = [0]);
            a = mul(x, row);
            half = tract_core_cast(a, to = "f16");
            where = gt(half, 1.0);
            size = tract_core_shape_of(x);
            y = select(where, a, x);
            """,
            "y, size",
            w=np.array([2.0, 3.0, 4.0], np.float32),
        ),
        "half", "where", "size", "y",
    )  # fmt: skip
    assert {name: array.dtype.name for name, array in arrays.items()} == {
        "half": "float16", "where": "bool", "size": "int64", "y": "float32",
    }  # fmt: skip
    np.testing.assert_array_equal(arrays["size"], [1, 3])
    np.testing.assert_array_equal(arrays["y"], [[0.5, -2.0, 95.0 * 4]])


def test_special_values_are_those_of_the_definition() -> None:
    arrays = values(program("y = softplus(x);", "y"), "y", "y")
    np.testing.assert_allclose(arrays["y"], np.logaddexp(0.0, X.astype(np.float64)), rtol=1e-6)


def test_a_program_that_takes_much_memory_has_no_values() -> None:
    body = "a = tile(x, repeats = [1, 1000000000]);\nb = sum_reduce(a, axes = [1]);\ny = mul(x, b);"
    assert values(program(body, "y"), "y") is None
    assert values(program("y = relu(x);", "y"), "y") is not None


def test_programs_that_cannot_be_computed_have_no_values() -> None:
    assert values(program("y = tract_core_no_such_operator(x);", "y"), "y") is None
    assert values(program("y = slice(x, axes = [5], begin = [0], end = [1]);", "y"), "y") is None
