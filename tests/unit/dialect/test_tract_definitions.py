"""Every operator of tract's registries has a definition with its parameters, or a reason why it has none."""

import inspect

import pytest

import t2n_core.dialect.meaning.onnx
import t2n_core.dialect.meaning.tract  # noqa: F401 - both register definitions
from t2n_core.dialect.registry import defines, definitions
from t2n_core.dialect.without_meaning import WITHOUT_MEANING
from t2n_core.errors import RegistryError
from t2n_core.nnef.spec import spec_data

ELSEWHERE = {"tract_core_external", "tract_core_scan", "nearest_upsample", "multilinear_upsample"}
"""Operators whose definition is beside the evaluator, or with the standard's."""
OPERATORS = sorted(
    name
    for name, rows in spec_data("tract.json")["operators"].items()
    if rows[-1]["registry"] != "tract_nnef" and name not in ELSEWHERE
)


DEFINED = sorted(set(OPERATORS) - set(WITHOUT_MEANING))


def test_an_operator_has_a_definition_or_a_reason() -> None:
    assert [name for name in OPERATORS if (name in definitions()) == (name in WITHOUT_MEANING)] == []


def test_a_definition_has_the_parameters_of_the_newest_release() -> None:
    rows = {name: spec_data("tract.json")["operators"][name][-1] for name in DEFINED}
    parameters = {name: list(inspect.signature(definitions()[name].function).parameters) for name in DEFINED}
    assert parameters == {name: [parameter[0] for parameter in row["parameters"]] for name, row in rows.items()}


def test_a_docstring_names_its_source() -> None:
    texts = {name: inspect.getdoc(definitions()[name].function) or "" for name in DEFINED}
    assert [name for name, text in texts.items() if not text.startswith("Return") or "\nSource: " not in text] == []


def test_a_second_definition_is_an_error() -> None:
    with pytest.raises(RegistryError, match="tract_core_erf"):
        defines("tract_core_erf")(lambda x: x)
