"""The inputs that a graph declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2n_core.dialect.tensors import datum_type
from t2n_core.errors import InputError
from t2n_core.nnef.reading.document import Document
from t2n_core.nnef.reading.flat import statement_of
from t2n_core.nnef.reading.tree import Call, Items, Literal, Node, Statement

_OPERATORS = ("external", "tract_core_external")


@dataclass(frozen=True, slots=True)
class External:
    """An input: its extents, which may be symbols and expressions of them, and its data type."""

    shape: Sequence[Node]
    dtype: np.dtype[Any]


def externals_of(document: Document) -> dict[str, External]:
    """Return the inputs of a graph by name, in the order of its header. Raises InputError for a malformed one."""
    statements = [statement_of(assignment) for assignment in document.assignments]
    externals = {
        statement.results[0]: _external(statement, statement.value)
        for statement in statements
        if isinstance(statement.value, Call) and statement.value.operator in _OPERATORS
    }
    return {name: externals[name] for name in document.inputs if name in externals}


def _external(statement: Statement, call: Call) -> External:
    is_standard = call.operator == "external"
    shape = _argument(statement, call, "shape", 0 if is_standard else 1)
    if not isinstance(shape, Items):
        raise InputError(f"`{statement.text}` has no list as its shape")
    if is_standard:
        return External(shape.items, datum_type(call.dtype or "scalar"))
    name = _argument(statement, call, "datum_type", 0)
    return External(shape.items, datum_type(str(name.value) if isinstance(name, Literal) else ""))


def _argument(statement: Statement, call: Call, name: str, index: int) -> Node:
    arguments = dict(call.arguments)
    if name in arguments:
        return arguments[name]
    positional = [value for key, value in call.arguments if not key]
    if index >= len(positional):
        raise InputError(f"`{statement.text}` has no `{name}`")
    return positional[index]
