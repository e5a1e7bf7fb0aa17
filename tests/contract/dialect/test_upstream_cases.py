"""The cases that the dialect's command writes for tract's repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.dialect.judge import judge
from conformance.dialect.upstream import write_upstream_cases
from t2n_core.dialect.cases import cases
from t2n_core.dialect.operators import functions
from t2n_core.engine.pool import TractRunner
from t2n_core.nnef.spec import spec_for
from t2n_core.reduce.tract_case import replay
from tests.releases import NEWEST


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        ("tract_onnx_non_max_suppression", "0 boxes of each class are taken for all of them"),
        ("tract_core_downsample", "a stride of 1 is taken for the identity, although `modulo` drops elements"),
    ],
)
def test_a_case_fails_when_it_is_replayed(
    op: str, reason: str, tract_engine: Callable[[str], TractRunner], tmp_path: Path
) -> None:
    engine = tract_engine(NEWEST)
    signature = spec_for("tract", NEWEST).operator(op)
    verdicts = list(judge(cases(op), functions().get(op), signature, engine, tmp_path / "judged"))
    (name,) = write_upstream_cases(verdicts, NEWEST, tmp_path / "cases")
    issue = (tmp_path / "cases" / f"{name}.issue.md").read_text()
    assert issue.startswith(f"# `{op}` in tract {NEWEST}: {reason}\n")
    assert not replay(tmp_path / "cases" / name, engine).passed


def test_an_operator_that_is_right_has_no_case(tract_engine: Callable[[str], TractRunner], tmp_path: Path) -> None:
    engine = tract_engine(NEWEST)
    signature = spec_for("tract", NEWEST).operator("neg")
    verdicts = list(judge(cases("neg"), functions().get("neg"), signature, engine, tmp_path / "judged"))
    assert write_upstream_cases(verdicts, NEWEST, tmp_path / "cases") == []
    assert not (tmp_path / "cases").exists()
