"""Values that a `graph.quant` quantises."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.dialect import evaluate
from t2n_core.errors import UndefinedOperatorError
from t2n_core.nnef.reading.archive import ArchiveContent
from t2n_core.nnef.reading.parser import read_text
from t2n_core.nnef.reading.quantisation import Grid

X = np.array([0.3, -1.0, 0.75, 90.0], np.float32)
FINE, COARSE = Grid(3, 0.25, np.dtype(np.int8)), Grid(0, 0.5, np.dtype(np.uint8))


def output_of(body: str, weights: np.ndarray = X, **grids: Grid) -> np.ndarray:
    text = f"version 1.0; graph g(x) -> (y) {{ x = external(shape = [4]); {body} }}"
    content = ArchiveContent(read_text(text), {"w": weights}, grids)
    return evaluate(content, {"x": X})["y"].array


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("q = tract_core_cast(x); y = tract_core_cast(q, to = 'f32');", [0.25, -1, 0.75, 31]),
        ("q = tract_core_cast(x, to = 'i8'); y = tract_core_cast(q, to = 'f32');", [0.25, -1, 0.75, 31]),
        ("q = tract_core_cast(x); y = tract_core_cast(q, to = 'i32');", [4, -1, 6, 127]),
        ("q = tract_core_cast(x); c = copy(q); y = tract_core_cast(c, to = 'f32');", [0, 0, 1, 31]),
        ("q = tract_core_cast(x); c = add(q, q); y = tract_core_cast(c, to = 'f32');", [0.5, 0, 1.5, 62]),
        (
            "i = tract_core_cast(x, to = 'i8'); q = tract_core_cast(i); y = tract_core_cast(q, to = 'f32');",
            [-0.75, -1, -0.75, 21.75],
        ),
        ("q = variable(label = 'w', shape = [4]); y = tract_core_cast(q, to = 'f32');", [-0.75, -0.5, 0, 1]),
    ],
)
def test_numbers_are_rounded_to_the_grid_of_their_name(body: str, expected: list[float]) -> None:
    result = output_of(body, np.array([0, 1, 3, 7], np.int8), q=FINE, c=COARSE)
    assert result.tolist() == expected


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "q = tract_core_cast(x); c = relu(q); y = c;",
            "`relu` of values that graph.quant quantises has no definition",
        ),
        ("q = tract_core_cast(x); y = add(q, q);", "`add` of values .* has no format there for its result"),
        ("q = tract_core_cast(x); c = mul(q, x); y = c;", "`mul` of values .* has operands of several formats"),
    ],
)
def test_what_has_no_definition_on_quantised_values(body: str, reason: str) -> None:
    with pytest.raises(UndefinedOperatorError, match=reason):
        output_of(body, q=FINE, c=COARSE)


def test_inputs_are_rounded_to_their_grid() -> None:
    assert output_of("y = copy(x);", x=FINE, y=COARSE).tolist() == [0, 0, 1, 31]
