"""Every operator in real engines, against its definition.

A case that is not right is explained by an erratum, or by an entry of `conformance/dialect/known`; an entry without
such a case is wrong itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from conformance.dialect.judge import Verdict, judge
from conformance.dialect.known import KNOWN, explanation
from conformance.dialect.session import judge_release
from t2n_core.dialect.cases import CASES, cases, operators
from t2n_core.dialect.operators import functions
from t2n_core.engine.pool import TractRunner
from t2n_core.errors import EngineLoadError
from t2n_core.nnef.spec import spec_for

RELEASES = ["0.21.19", "0.23.9"]
NEVER_RIGHT = {
    "tract_core_qmatmul": RELEASES,
    "tract_core_qconv": ["0.21.19"],
    "tract_onnx_ml_reverse_lookup": RELEASES,
    "max_pool_with_index": RELEASES,
}
"""Operators of which no case is right, and the releases."""
WRONG_BY_DESIGN = ["tract_transformers_window_kv_sdpa", "tract_transformers_quantized_kv_sdpa"]
"""The operators that were found wrong before there was a definition."""
CELLS = [(op, release) for release in RELEASES for op in operators() if spec_for("tract", release).has(op)]


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


@pytest.mark.parametrize(("op", "release"), CELLS)
def test_what_is_not_right_is_known(judged: Callable[[str, str], list[Verdict]], op: str, release: str) -> None:
    verdicts = judged(op, release)
    assert len(verdicts) >= CASES // 4
    unknown = [one for one in verdicts if one.status != "right" and explanation(one) is None]
    assert [(one.number, one.status, one.reason) for one in unknown] == []
    right = sum(one.status == "right" for one in verdicts)
    if not any(one.by_chance and op in one.operators and one.in_release(release) for one in KNOWN):
        assert (right == 0) == (release in NEVER_RIGHT.get(op, ()))


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: f"{known.operators[0]}: {known.reason}")
def test_what_is_known_is_met(judged: Callable[[str, str], list[Verdict]], known: object) -> None:
    assert known in KNOWN
    entry = KNOWN[KNOWN.index(known)]  # type: ignore[arg-type]
    cells = [(op, release) for op, release in CELLS if op in entry.operators and entry.in_release(release)]
    if not cells or entry.by_chance:
        pytest.skip("in none of these releases, or not in every run")
    for release in {release for _, release in cells}:
        ops = [op for op, having in cells if having == release]
        assert any(entry.explains(one) for op in ops for one in judged(op, release)), release


@pytest.mark.parametrize("op", WRONG_BY_DESIGN)
def test_the_two_wrong_caches_are_found(judged: Callable[[str, str], list[Verdict]], op: str) -> None:
    verdicts = judged(op, "0.23.9")
    single = [one for one in verdicts if one.case.arguments["q"].shape[2] == 1]
    assert single
    assert all(one.status == "right" for one in single)
    assert sum(one.status == "wrong" for one in verdicts) >= 10


def test_a_missing_runtime_is_an_error_before_the_first_case(tmp_path: Path) -> None:
    with pytest.raises(EngineLoadError, match=r"0\.23\.9 nothing: Unknown runtime nothing"):
        judge_release("0.23.9", ["tract_core_silu"], 1, tmp_path, "nothing")
    assert list(tmp_path.iterdir()) == []
