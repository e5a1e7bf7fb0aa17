"""Every operator in real engines, against its definition.

A case that is not right is explained by an erratum, or by an entry of `conformance/dialect/known`; an entry without
such a case is wrong itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conformance.dialect.judge import Verdict, judge
from conformance.dialect.known import KNOWN, explanation
from conformance.dialect.known.entry import Known
from conformance.dialect.session import judge_release
from t2n_core.dialect.cases import CASES, cases, operators
from t2n_core.dialect.operators import functions
from t2n_core.engine.pool import TractRunner
from t2n_core.errors import EngineLoadError
from t2n_core.nnef.spec import spec_for
from tests.releases import NEWEST

OLDER = "0.21.19"
RELEASES = [OLDER, NEWEST]
NEVER_RIGHT = {
    "tract_core_qmatmul": RELEASES,
    "tract_core_qconv": [OLDER],
    "tract_onnx_ml_reverse_lookup": RELEASES,
    "max_pool_with_index": RELEASES,
}
"""Operators of which no case is right, and the releases."""
WRONG_BY_DESIGN = ["tract_transformers_window_kv_sdpa", "tract_transformers_quantized_kv_sdpa"]
"""The operators that were found wrong before there was a definition."""
CELLS = [(op, release) for release in RELEASES for op in operators() if spec_for("tract", release).has(op)]


def on_releases(cells: Iterable[tuple[Any, str]]) -> list[Any]:
    """Return cells as values of parameters; those of the older release are tested nightly."""
    return [pytest.param(*cell, marks=[] if cell[1] == NEWEST else pytest.mark.nightly) for cell in cells]


@pytest.fixture(scope="module")
def judged(
    tract_engine: Callable[[str], TractRunner], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], list[Verdict]]:
    """A function from an operator and a release to the verdicts of its cases."""

    @cache
    def verdicts(op: str, release: str) -> list[Verdict]:
        folder: Path = tmp_path_factory.mktemp("cases")
        signature = spec_for("tract", release).operator(op)
        return list(judge(cases(op), functions().get(op), signature, tract_engine(release), folder))

    return verdicts


@pytest.mark.parametrize(("op", "release"), on_releases(CELLS))
def test_what_is_not_right_is_known(judged: Callable[[str, str], list[Verdict]], op: str, release: str) -> None:
    verdicts = judged(op, release)
    assert len(verdicts) >= CASES // 4
    unknown = [verdict for verdict in verdicts if verdict.status != "right" and explanation(verdict) is None]
    assert [(verdict.number, verdict.status, verdict.reason) for verdict in unknown] == []
    right = sum(verdict.status == "right" for verdict in verdicts)
    if not any(erratum.by_chance and op in erratum.operators and erratum.in_release(release) for erratum in KNOWN):
        assert (right == 0) == (release in NEVER_RIGHT.get(op, ()))


@pytest.mark.parametrize(
    ("known", "release"),
    on_releases((erratum, release) for release in RELEASES for erratum in KNOWN if erratum.in_release(release)),
    ids=lambda value: value if isinstance(value, str) else f"{value.operators[0]}: {value.reason}",
)
def test_what_is_known_is_met(judged: Callable[[str, str], list[Verdict]], known: Known, release: str) -> None:
    names = [op for op in known.operators if (op, release) in CELLS]
    if not names or known.by_chance:
        pytest.skip("its operators are not in this release, or it is not met in every run")
    assert any(known.explains(verdict) for op in names for verdict in judged(op, release))


@pytest.mark.parametrize("op", WRONG_BY_DESIGN)
def test_the_two_wrong_caches_are_found(judged: Callable[[str, str], list[Verdict]], op: str) -> None:
    verdicts = judged(op, NEWEST)
    single = [verdict for verdict in verdicts if verdict.case.arguments["q"].shape[2] == 1]
    assert single
    assert all(verdict.status == "right" for verdict in single)
    assert sum(verdict.status == "wrong" for verdict in verdicts) >= 10


def test_a_missing_runtime_is_an_error_before_the_first_case(tmp_path: Path) -> None:
    with pytest.raises(EngineLoadError, match=rf"{re.escape(NEWEST)} nothing: Unknown runtime nothing"):
        judge_release(NEWEST, ["tract_core_silu"], 1, tmp_path, "nothing")
    assert list(tmp_path.iterdir()) == []
