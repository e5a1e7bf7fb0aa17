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
    found = list(judge_programs(drawn, tract_engine(release), path, tmp_path))
    assert len(found) == len(drawn)
    bad = [one for one in found if one.status != "right"]
    assert [(one.program.name, one.status, one.reason) for one in bad if explanation(one) is None] == []
    assert 1 - len(bad) / len(found) >= RIGHT[release]
