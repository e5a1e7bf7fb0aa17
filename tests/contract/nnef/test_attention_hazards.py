"""The engine's own attention with a state, which is written for one token a call at most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.lab.upstream.operators import TRIED, WRONG, Wrong, error_of
from t2n_core.nnef.legality import check_graph
from t2n_core.nnef.spec import spec_for

WINDOW, QUANTIZED = (wrong.operator for wrong in WRONG)
OPTIONS = {WINDOW: {"axis": 2, "window": 5}, QUANTIZED: {"axis": 2}}


def problems(build: Any, version: str, operator: str, rows: Any) -> list[str]:
    q, k, v = (build.input(name, (1, 1, rows, 4)) for name in "qkv")
    y = build.op(operator, "y", (1, 1, rows, 4), q=q, k=k, v=v, **OPTIONS[operator])
    return [problem.message for problem in check_graph(build.outputs(y), spec_for("tract", version))]


@pytest.mark.parametrize("version", TRIED)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: one.name)
def test_what_is_computed_wrongly_is_refused(wrong: Wrong, version: str, tract_engine: Any, build: Any) -> None:
    assert error_of(wrong, tract_engine(version)) > 0.05
    (message,) = problems(build, version, wrong.operator, 3)
    assert wrong.operator in message


def test_one_token_in_a_window_is_right_and_allowed(tract_engine: Any, build: Any) -> None:
    one = Wrong("one", "", WINDOW, "axis = 2, window = 5", 1, 1, 1.0, "")
    assert problems(build, "0.23.9", WINDOW, 1) == []
    assert np.array_equal(one.sample().expected[0], one.sample().inputs[2])
