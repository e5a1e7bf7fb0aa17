"""The engine's own attention with a state, which is written for one token a call at most."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.lab.upstream.cases import OPERATORS, largest_error
from t2n_core.nnef.legality import check_graph
from t2n_core.nnef.spec import spec_for
from tests.releases import NEWEST

WINDOW, QUANTIZED = OPERATORS.values()
TRIED = ("0.23.3", "0.23.5", "0.23.8", NEWEST)
OPTIONS = {WINDOW: {"axis": 2, "window": 5}, QUANTIZED: {"axis": 2}}


def problems(build: Any, version: str, operator: str, rows: Any) -> list[str]:
    q, k, v = (build.input(name, (1, 1, rows, 4)) for name in "qkv")
    y = build.op(operator, "y", (1, 1, rows, 4), q=q, k=k, v=v, **OPTIONS[operator])
    return [problem.message for problem in check_graph(build.outputs(y), spec_for("tract", version))]


@pytest.mark.parametrize("version", TRIED)
@pytest.mark.parametrize(("case", "operator"), OPERATORS.items())
def test_what_is_computed_wrongly_is_refused(
    case: str, operator: str, version: str, tract_engine: Any, build: Any
) -> None:
    assert largest_error(case, tract_engine(version)) > 0.05
    (message,) = problems(build, version, operator, 3)
    assert operator in message


def test_one_token_in_a_window_is_allowed(build: Any) -> None:
    assert problems(build, NEWEST, WINDOW, 1) == []
