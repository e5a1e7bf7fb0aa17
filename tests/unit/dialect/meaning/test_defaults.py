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


@pytest.mark.parametrize(("op", "name", "value"), list(defaults()))
def test_a_default_is_that_of_the_operator(op: str, name: str, value: Any) -> None:
    known = [parameter.default for one in signatures_of(op) for parameter in one.parameters if parameter.name == name]
    stated = [one for one in known if isinstance(one, bool | int | float)]
    if not stated:  # the operator requires it: the definition alone is called without it
        pytest.skip("no release has a default")
    assert any(value == pytest.approx(one, rel=1e-6) for one in stated), stated
