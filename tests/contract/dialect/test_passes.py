"""Programs of a few statements in real engines, on each path: what is not right is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.dialect.passes.families import FAMILIES, programs
from conformance.dialect.passes.judging import judge_programs
from conformance.dialect.passes.known import explanation
from conformance.dialect.passes.session import paths_in
from t2n_core.engine.paths import EnginePath
from t2n_core.engine.pool import TractRunner
from tests.releases import NEWEST

COUNT = 10
RIGHT = {"0.21.19": 0.85, NEWEST: 0.9}
"""The least share of programs that are right, by release."""


@pytest.mark.parametrize(("release", "path"), [(release, path) for release in RIGHT for path in paths_in(release)])
def test_what_is_not_right_is_known(
    tract_engine: Callable[[str], TractRunner], release: str, path: EnginePath, tmp_path: Path
) -> None:
    drawn = [program for family in FAMILIES for program in programs(family, COUNT)]
    verdicts = list(judge_programs(drawn, tract_engine(release), path, tmp_path))
    assert len(verdicts) == len(drawn)
    bad = [verdict for verdict in verdicts if verdict.status != "right"]
    assert [
        (verdict.program.name, verdict.status, verdict.reason) for verdict in bad if explanation(verdict) is None
    ] == []
    assert 1 - len(bad) / len(verdicts) >= RIGHT[release]
