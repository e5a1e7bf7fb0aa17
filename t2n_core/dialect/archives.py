"""Evaluation of archives, from this exporter or another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from t2n_core.dialect.evaluator import Evaluation
from t2n_core.dialect.symbols import check_assertions, solve
from t2n_core.dialect.syntax import Call, Items, Literal, Node, Statement, statement_of
from t2n_core.dialect.tensors import Tensor, datum_type
from t2n_core.errors import InputError
from t2n_core.nnef.reading.archive import ArchiveContent, read_archive

_EXTERNAL = ("external", "tract_core_external")


def evaluate(
    archive: str | Path | ArchiveContent,
    inputs: Mapping[str, ArrayLike] | Sequence[ArrayLike],
    *,
    round_to_storage: bool = False,
    results: Sequence[str] | None = None,
    timeout: float | None = None,
) -> dict[str, Tensor]:
    """Return the outputs of an archive by name, or the values `results`, as the definitions of its operators say.

    Floats are computed in float64, and with `round_to_storage` rounded to the data type of the tensor after each
    operation. Inputs are arrays by name, or in the order of the graph's inputs. Only values that are read later are
    kept in memory. After `timeout` seconds no further operation begins.

    Raises InputError for an archive that cannot be read and inputs that do not fit its shapes, UndefinedOperatorError
    for an operator without a definition, MeaningError for an operation outside of its domain, or after the timeout.
    """
    content = archive if isinstance(archive, ArchiveContent) else read_archive(Path(archive))
    document = content.document
    statements = [statement_of(assignment) for assignment in document.assignments]
    declared = {one.results[0]: one for one in statements if isinstance(one.value, Call) and _is_external(one.value)}
    given = _by_name(document.inputs, inputs)
    tensors = {name: _input(declared[name], given[name]) for name in document.inputs if name in declared}
    shapes = {name: (_shape_of(declared[name]), tensor.shape) for name, tensor in tensors.items()}
    symbols = solve(shapes)
    check_assertions(document.extensions, symbols)
    options: Any = {"round_to_storage": round_to_storage, "timeout": timeout}
    evaluation = Evaluation(document.fragments, content.tensors, symbols, **options)
    body = [statement for statement in statements if statement.results[0] not in tensors]
    values: dict[str, Any] = dict(tensors)
    return evaluation.run(body, values, document.outputs if results is None else results)


def _is_external(call: Call) -> bool:
    return call.operator in _EXTERNAL


def _by_name(names: Sequence[str], inputs: Mapping[str, ArrayLike] | Sequence[ArrayLike]) -> dict[str, ArrayLike]:
    if not isinstance(inputs, Mapping):
        if len(inputs) != len(names):
            raise InputError(f"the graph has {len(names)} inputs, and {len(inputs)} are given")
        return dict(zip(names, inputs, strict=True))
    if set(inputs) != set(names):
        raise InputError(f"the graph has the inputs {', '.join(names)}, and {', '.join(inputs)} are given")
    return dict(inputs)


def _argument(statement: Statement, name: str, place: int) -> Node:
    assert isinstance(statement.value, Call)
    named = dict(statement.value.arguments)
    if name in named:
        return named[name]
    positional = [value for key, value in statement.value.arguments if not key]
    if place >= len(positional):
        raise InputError(f"`{statement.text}` has no `{name}`")
    return positional[place]


def _shape_of(statement: Statement) -> Sequence[Node]:
    assert isinstance(statement.value, Call)
    shape = _argument(statement, "shape", 0 if statement.value.operator == "external" else 1)
    if not isinstance(shape, Items):
        raise InputError(f"`{statement.text}` has no list as its shape")
    return shape.items


def _input(statement: Statement, given: ArrayLike) -> Tensor:
    assert isinstance(statement.value, Call)
    if statement.value.operator == "external":
        dtype = datum_type(statement.value.dtype or "scalar")
    else:
        name = _argument(statement, "datum_type", 0)
        dtype = datum_type(str(name.value) if isinstance(name, Literal) else "")
    array = np.asarray(given)
    if array.dtype.kind != dtype.kind and not (array.dtype.kind in "iu" and dtype.kind in "iu"):
        raise InputError(f"the input `{statement.results[0]}` is {array.dtype}, and the graph declares {dtype}")
    return Tensor(array.astype(np.float64 if dtype.kind == "f" else dtype), dtype)


__all__ = ["evaluate"]
