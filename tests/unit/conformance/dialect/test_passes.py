"""The programs around what passes rewrite, and the explanations of those that are not right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.dialect.passes.families import FAMILIES, LEAST, MOST, programs
from conformance.dialect.passes.judging import PassVerdict, judge_programs
from conformance.dialect.passes.known import KNOWN, explanation
from conformance.dialect.passes.program import Name, Program, Step
from conformance.dialect.passes.session import judge_kept, matrix, paths_in, smallest
from t2n_core.engine.paths import EnginePath
from t2n_core.engine.protocol import EngineReply
from t2n_core.nnef.spec import spec_for
from tests.releases import NEWEST

DECLUTTER, OPTIMISE_ONLY = EnginePath.DECLUTTER, EnginePath.OPTIMISE_ONLY
COUNT = 20
X = np.asarray([[1.0, -2.0, 3.0]], np.float32)
NEGATED = Program(
    "slices", 0, {"x": X}, {}, (Step("neg", {"x": Name("x")}, ("y",)),), ("y",), {"x": (1, 3), "y": (1, 3)}
)


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_are_the_same_ones_and_have_two_to_four_statements(family: str) -> None:
    drawn = list(programs(family, COUNT))
    assert [program.graph() for program in drawn] == [program.graph() for program in programs(family, COUNT)]
    assert len({program.graph() for program in drawn}) > COUNT * 0.9
    assert {len(program.steps) for program in drawn} <= set(range(LEAST, MOST + 1))
    assert {bool(program.dynamic) for program in drawn} == {False, True}
    newest = spec_for("tract", NEWEST)
    assert {step.op for program in drawn for step in program.steps if not newest.has(step.op)} == set()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_definitions_give_results_of_the_shapes_that_were_drawn(family: str, tmp_path: Path) -> None:
    for program in programs(family, COUNT):
        results = program.expected(program.write(tmp_path / program.name))
        assert [result.shape for result in results] == [tuple(program.shapes[name]) for name in program.outputs], (
            program.name
        )


def test_every_value_is_read_or_an_output_except_in_branches() -> None:
    for family in FAMILIES:
        for program in programs(family, COUNT):
            made = {name for step in program.steps for name in step.results}
            unread = {name for name in made if not program.readers(name)} - set(program.outputs)
            assert not unread or family == "branches", program.name


@dataclass
class Fixed:
    """An engine with one reply, or that of a function of the inputs."""

    reply: EngineReply | None = None
    version: str = "0.22.4"
    runs: list[EnginePath] = field(default_factory=list)

    def run(self, archive: Path, batches: Sequence[Any], *, timeout: float, path: EnginePath) -> EngineReply:
        self.runs.append(path)
        return self.reply or EngineReply("ok", "run", outputs=((-batches[0][0],),))


def test_verdicts(tmp_path: Path) -> None:
    right, wrong = Fixed(), Fixed(EngineReply("ok", "run", outputs=((X,),)))
    refused = Fixed(EngineReply("error", "optimise", "why"))
    verdicts = [next(judge_programs([NEGATED], engine, DECLUTTER, tmp_path)) for engine in (right, wrong, refused)]  # type: ignore[arg-type]
    assert [verdict.status for verdict in verdicts] == ["right", "wrong", "refused"]
    assert verdicts[1].reason == "y: 1.0 at [0, 0], not -1.0; 3 of 3 elements"
    assert verdicts[2].reason == "optimise: why"
    assert list(tmp_path.iterdir()) == []
    assert "| 0.22.4 | declutter | 1 | 1 | 1 | 0 | 0 |" in matrix(verdicts)
    assert [verdict.status for verdict in smallest(verdicts)] == ["wrong", "refused"]


def test_a_verdict_is_kept_until_the_program_changes(tmp_path: Path) -> None:
    engine = Fixed()
    for program in (NEGATED, NEGATED, replace(NEGATED, inputs={"x": X + 1})):
        (verdict,) = judge_kept([program], engine, OPTIMISE_ONLY, tmp_path)  # type: ignore[arg-type]
        assert verdict.status == "right"
    assert engine.runs == [OPTIMISE_ONLY, OPTIMISE_ONLY]
    rows = (tmp_path / "0.22.4-optimise-only.jsonl").read_text().splitlines()
    assert [json.loads(row)["program"] for row in rows] == ["slices-0", "slices-0"]


def test_the_paths_of_a_release() -> None:
    assert paths_in("0.22.4") == [DECLUTTER, OPTIMISE_ONLY]
    assert paths_in("0.22.4", "optimise-only") == [OPTIMISE_ONLY]
    assert paths_in("0.23.0") == [DECLUTTER]


def test_an_explanation_holds_for_its_error_releases_and_path_only() -> None:
    error = (
        "optimise: running pass PushSliceUp\n\nCaused by:\n    Condition failed: `boundaries[0] == 0.to_dim()` (Val(2)"
    )
    verdict = PassVerdict(NEGATED, "0.22.4", DECLUTTER, "refused", error)
    assert explanation(verdict) in KNOWN
    for other in ({"release": "0.21.10"}, {"path": OPTIMISE_ONLY}, {"status": "crashed"}, {"reason": "optimise: why"}):
        assert explanation(replace(verdict, **other)) is None  # type: ignore[arg-type]
    assert explanation(replace(verdict, status="wrong", reason="y: 1.0 at [0, 0], not -1.0")) is None
