"""The registry of definitions."""

from __future__ import annotations

import inspect

import pytest

from t2n_core.dialect import operators
from t2n_core.dialect.binding import newest_names
from t2n_core.dialect.operators import functions
from t2n_core.dialect.registry import defines
from t2n_core.dialect.statements import STATEMENTS
from t2n_core.errors import RegistryError
from t2n_core.nnef.spec import known_operators, signatures_of

REGIONS = frozenset("avg_roi_align avg_roi_pool max_roi_align max_roi_pool roi_resample".split())
"""Operators of the standard without a definition: nothing that could be compared runs them."""


def test_a_second_definition_is_refused() -> None:
    assert "relu" in functions()  # which loads the definitions
    with pytest.raises(RegistryError, match="`relu` is defined twice"):
        defines("relu")(abs)


def test_every_operator_of_the_standard_has_a_definition() -> None:
    assert set(known_operators("khronos")) - set(operators()) == REGIONS


def test_every_definition_is_of_an_operator_with_its_parameters() -> None:
    for name, definition in functions().items():
        names = {parameter for signature in signatures_of(name) for parameter in newest_names(name, signature).values()}
        parameters = {f"{parameter}_" if parameter == "lambda" else parameter for parameter in names}
        assert set(inspect.signature(definition.function).parameters) == parameters, name


def test_every_definition_says_what_it_computes_and_where_that_stands() -> None:
    for name, text in operators().items():
        assert text.startswith("Return"), name
        assert "Source: " in text, name


def test_no_statement_is_a_function_too() -> None:
    assert not STATEMENTS.keys() & functions().keys()
