"""Shapes that are predicted without a value: those of the results, for every case of every operator that has a rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from t2n_core.dialect import Case, cases, evaluate
from t2n_core.dialect.graphs.budget import _Count, _stand_in
from t2n_core.dialect.graphs.evaluation import sizes_of
from t2n_core.dialect.graphs.shapes import OF_SIZES, RULES, VIEWS
from t2n_core.dialect.tensors import Tensor
from t2n_core.errors import T2NError
from t2n_core.nnef.reading.archive import ArchiveContent
from t2n_core.nnef.reading.flat import statement_of
from t2n_core.nnef.reading.parser import read_text
from tests.each import check_each

OPERATORS = sorted({*RULES, *VIEWS, *OF_SIZES, "tract_core_scan"})


def shapes_of(case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the shapes of the results by name: the predicted ones, and those of the evaluation."""
    constants = {label: array for name, label, array in case.tensors() if name in case.constant}
    content = ArchiveContent(read_text(case.graph()), constants)
    outputs = evaluate(content, case.inputs())
    inputs = dict(zip(content.document.inputs, case.inputs(), strict=True))
    statements = [statement_of(assignment) for assignment in content.document.assignments]
    body = [statement for statement in statements if statement.results[0] not in inputs]
    count = _Count(content.document.fragments, constants, sizes_of(content, inputs), 1 << 40)
    results = count.run(
        body, {name: _stand_in(array.shape, array.dtype) for name, array in inputs.items()}, tuple(outputs)
    )
    predicted = {name: value.shape for name, value in results.items() if isinstance(value, Tensor)}
    return predicted, {name: output.shape for name, output in outputs.items()}


def test_predicted_shapes_are_those_of_the_results() -> None:
    def check(name: str) -> None:
        compared = 0
        for case in cases(name):
            try:
                predicted, actual = shapes_of(case)
            except (T2NError, ValueError, IndexError):  # a case outside of the operator's domain
                continue
            assert predicted.items() <= actual.items(), case.graph()
            compared += len(predicted)
        assert compared

    check_each(OPERATORS, check)


def test_no_element_is_computed() -> None:
    graph = """version 1.0;
extension tract_registry tract_core;
extension tract_symbol N;
graph g(x) -> (y)
{
  x = external<scalar>(shape = [N, 4]);
  size = tract_core_shape_of(x);
  rows = slice(size, axes = [0], begin = [0], end = [1]);
  many = mul(rows, 1000000);
  shape = concat([many, [4]], axis = 0);
  y = tract_core_broadcast(slice(x, axes = [0], begin = [0], end = [1]), shape);
}
"""
    content = ArchiveContent(read_text(graph), {})
    count = _Count({}, {}, {"N": 3}, 1 << 40)
    body = [statement_of(assignment) for assignment in content.document.assignments][1:]
    (result,) = count.run(body, {"x": _stand_in((3, 4), np.dtype(np.float32))}, ("y",)).values()
    assert result.shape == (3_000_000, 4)
    assert result.stored.strides == (0, 0)
