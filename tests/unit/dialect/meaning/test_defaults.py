"""The defaults of the definitions are those that the operators have in the spec tables."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

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
        parameters = [one for signature in signatures_of(op) for one in signature.parameters if one.name == name]
        stated = [one.default for one in parameters if isinstance(one.default, bool | int | float)]
        compared += bool(stated)
        if stated and not any(value == pytest.approx(one, rel=1e-6) for one in stated):
            wrong.append((op, name, value, stated))
    assert wrong == []
    assert compared > 60
