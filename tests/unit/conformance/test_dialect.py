"""The judgement of a case in an engine, and the explanations of cells that are not right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.dialect.judge import Verdict, applies, difference, judge
from conformance.dialect.known import KNOWN, explanation
from conformance.dialect.session import known_definitions, matrix, smallest
from t2n_core.dialect.cases import Case, operators
from t2n_core.engine.protocol import EngineReply, ReplyStatus
from t2n_core.nnef.signatures import Parameter, Signature

X = Parameter("x", "tensor<scalar>")
SILU = Signature("tract_core_silu", (X,), (Parameter("y", "tensor<scalar>"),), "tract_core")
CASE = Case("tract_core_silu", {"x": np.asarray([0.0, 30.0], np.float32)})


@pytest.mark.parametrize(
    ("found", "wanted", "text"),
    [
        ([1.0, 2.0], [1.0, 2.0], ""),
        ([1.0, 2.00003], [1.0, 2.0], ""),
        ([1.0, 2.125], [1.0, 2.0], "2.125 at [1], not 2.0"),
        ([np.nan, np.inf], [np.nan, np.inf], ""),
        ([0.0, 1.0], [np.nan, 1.0], "0.0 at [0], not nan; 1 of 2 elements"),
        ([np.nan, 1.0], [0.0, 1.0], "nan at [0]"),
        ([np.inf, 1.0], [-np.inf, 1.0], "inf at [0], not -inf"),
        ([np.inf, 1.0], [1e39, 1.0], ""),
        ([0.0, 1.0], [0.001, 100.0], "1.0 at [1]"),
    ],
)
def test_floats_differ_beyond_their_precision(found: list[float], wanted: list[float], text: str) -> None:
    said = difference(np.asarray(found, np.float32), np.asarray(wanted))
    assert said.startswith(text) if text else said == ""


def test_shapes_types_and_integers() -> None:
    assert difference(np.zeros((2, 1)), np.zeros(2)) == "shape [2, 1], not [2]"
    assert difference(np.zeros(2), np.zeros(2, np.int64)) == "float64, not int64"
    assert difference(np.zeros(2, np.int32), np.zeros(2, np.int64)) == ""
    assert difference(np.asarray([1, 2]), np.asarray([1, 3])) == "2 at [1], not 3; 1 of 2 elements"


def test_a_case_applies_where_the_release_has_its_arguments() -> None:
    assert applies(CASE, SILU)
    assert not applies(Case("tract_core_silu", {"x": X, "k": 1}), replace(SILU, parameters=(X, X)))


@dataclass
class Engine:
    """An engine that replies what it was made with."""

    status: ReplyStatus
    output: Sequence[float] = ()
    version: str = "0.23.9"

    def run(self, archive: Path, batches: Sequence[Any], *, timeout: float) -> EngineReply:
        assert (archive / "graph.nnef").is_file()
        outputs = ((np.asarray(self.output, np.float32),),) if self.status == "ok" else ()
        return EngineReply(self.status, "run", "why", outputs=outputs)


@pytest.mark.parametrize(
    ("engine", "status", "reason"),
    [
        (Engine("ok", [0.0, 30.0]), "right", ""),
        (Engine("ok", [0.0, 29.0]), "wrong", "29.0 at [1], not 29.999999999997197; 1 of 2 elements"),
        (Engine("error"), "refused", "run: why"),
        (Engine("crash"), "crashed", "run: why"),
        (Engine("oom"), "crashed", "run: why"),
        (Engine("timeout"), "timed out", "run: why"),
    ],
)
def test_verdicts(engine: Engine, status: str, reason: str, tmp_path: Path) -> None:
    (verdict,) = judge([CASE], known_definitions()["tract_core_silu"], SILU, engine, tmp_path)  # type: ignore[arg-type]
    assert (verdict.status, verdict.reason, verdict.release) == (status, reason, "0.23.9")
    assert list(tmp_path.iterdir()) == []


def test_the_table_and_the_smallest_cases() -> None:
    small = Case("tract_core_silu", {"x": np.asarray([np.nan], np.float32)})
    large = Case("tract_core_silu", {"x": np.asarray([np.nan, 1.0], np.float32)})
    found = [
        Verdict(CASE, 0, "0.23.9", "right"),
        Verdict(large, 1, "0.23.9", "wrong", "a"),
        Verdict(small, 2, "0.23.9", "wrong", "b"),
        Verdict(CASE, 0, "0.22.4", "crashed", "c"),
    ]
    assert "| `tract_core_silu` | 1 right, 2 wrong | 1 crashed |" in matrix(found)
    assert [verdict.reason for verdict in smallest(found)] == ["b", "c"]


def test_an_explanation_holds_for_its_releases_cases_and_statuses_only() -> None:
    nan = Case("tract_core_silu", {"x": np.asarray([np.nan], np.float32)})
    assert explanation(Verdict(nan, 0, "0.23.0", "wrong")) in KNOWN
    assert explanation(Verdict(nan, 0, "0.22.4", "wrong")) is None
    assert explanation(Verdict(nan, 0, "0.23.0", "crashed")) is None
    assert explanation(Verdict(CASE, 0, "0.23.0", "wrong")) is None


def test_explanations_name_operators_that_have_cases() -> None:
    assert {op for known in KNOWN for op in known.operators} <= set(operators())
