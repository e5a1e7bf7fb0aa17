"""What definitions have in common: defaults, axes that are aligned at the front, first values of extremes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from t2n_core.dialect.meaning.broadcasting import aligned
from t2n_core.dialect.meaning.extremes import highest, lowest
from t2n_core.dialect.operators import functions
from t2n_core.nnef.spec import signatures_of


def defaults() -> Iterator[tuple[str, str, Any]]:
    """Yield operator, parameter and value of each default that is a number or a boolean."""
    for op, definition in sorted(functions().items()):
        for parameter in inspect.signature(definition.function).parameters.values():
            if isinstance(parameter.default, bool | int | float):
                yield op, parameter.name.rstrip("_"), parameter.default


def test_a_default_is_that_of_the_operator() -> None:
    """Parameters that the operator requires have none: the definition alone is called without them."""
    compared, wrong = 0, []
    for op, name, value in defaults():
        parameters = [
            parameter for signature in signatures_of(op) for parameter in signature.parameters if parameter.name == name
        ]
        stated = [parameter.default for parameter in parameters if isinstance(parameter.default, bool | int | float)]
        compared += bool(stated)
        if stated and not any(value == pytest.approx(default, rel=1e-6) for default in stated):
            wrong.append((op, name, value, stated))
    assert wrong == []
    assert compared > 60


def test_axes_are_added_at_the_end() -> None:
    shapes = [array.shape for array in aligned(np.zeros((2, 3, 4)), np.zeros(2), np.asarray(5.0), np.zeros((2, 1)))]
    assert shapes == [(2, 3, 4), (2, 1, 1), (1, 1, 1), (2, 1, 1)]


def test_each_row_has_its_own_value() -> None:
    left, right = aligned(np.asarray([[1, 2, 3], [4, 5, 6]]), np.asarray([10, 20]))
    assert (left + right).tolist() == [[11, 12, 13], [24, 25, 26]]


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [(np.float32, -np.inf, np.inf), (np.bool_, False, True), (np.int16, -32768, 32767), (np.uint8, 0, 255)],
)
def test_the_extremes_of_a_data_type(kind: type, low: float, high: float) -> None:
    assert lowest(np.dtype(kind)) == low
    assert highest(np.dtype(kind)) == high
    assert type(lowest(np.dtype(kind))) is type(low)
    assert type(highest(np.dtype(kind))) is type(high)
