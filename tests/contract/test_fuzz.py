"""Random models on real engines, and engines that are wrong on purpose before the same judge."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from conformance.lab.fuzz import judge as judge_module
from conformance.lab.fuzz.generator import RUNNERS
from conformance.lab.fuzz.judge import Finding, Reference, judge
from conformance.lab.fuzz.program import Input, Program, Step
from conformance.lab.fuzz.session import judge_seed, judge_state_seed, shrunk, targets_of
from conformance.lab.fuzz.states.judge import judge_states
from conformance.lab.fuzz.states.program import generate_state
from conformance.lab.fuzz.verdict import CRASH, ENGINE_ERROR, EXCEPTION, RED, REFUSED, RIGHT, WRONG
from t2n_core import TractNNEF
from t2n_core.engine import ResolvedEngine
from t2n_core.engine.protocol import Array
from t2n_core.export.result import ExportResult
from t2n_core.parity.outcome import Outcome, Status
from t2n_core.torch_graph.frontend.pytree.objects import parts_at_any_depth
from t2n_core.torch_graph.frontend.state.state import ModelState
from tests.releases import NEWEST
from tests.tract_cli import make_cli

SEEDS = (2, 3, 4, 7, 9, 10, 12, 14, 16, 18, 19, 22, 23, 28, 32, 34, 35, 37, 38, 39)
RUNNING_SEEDS = (2, 5, 13, 20)
STATE_SEEDS = range(1, 25)
STATE_IN_ANOTHER_ORDER = 17
VERSIONS = ("0.21.19", NEWEST)
STEPS = (
    Step("v0", "torch.tanh(x)"),
    Step("v1", "v0.mean(1)"),
    Step("v2", "v0 * 0.5"),
)
PROGRAM = Program((Input("x", (2, "T", 4)),), STEPS, ("v1", "v2"), {"T": 5}, seed=3)
SIZES = [{"T": n} for n in (5, 1, 2, 17)]
RUNS = len(SIZES) + 1
"""One at each size, and one with the symbols fixed before."""
PANIC = (
    "_log(\"thread 'main' panicked at core/src/plan.rs:7:9:\\nindex out of bounds\\nnote: run with\"); sys.exit(101)"
)
FAULTS = {
    "a number": ("outputs[1][0, -1, 2] += 0.01", WRONG, 1, "v2[0, 16, 2]"),
    "a shape": ("outputs[0] = outputs[0][:1]", WRONG, 1, "v1: shape [1, 4], expected [2, 4]"),
    "a dtype": ("outputs[0] = outputs[0].astype('f8')", WRONG, 1, "dtype float64"),
    "outputs swapped": ("outputs.reverse()", WRONG, 1, "v1"),
    "a panic": (PANIC, CRASH, 1, "index out of bounds"),
    "an error": ("_log('[ERROR tract] no such size'); sys.exit(1)", ENGINE_ERROR, 1, "no such size"),
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_fault_at_one_size_is_found_and_named(
    fault: str, resolved_engine: Callable[[str], ResolvedEngine], tmp_path: Path
) -> None:
    spoil, status, count, words = FAULTS[fault]
    at_17 = f"if outputs[1].shape[1] == 17: {spoil}"
    target = TractNNEF(specific_tract_binary_path=make_cli(tmp_path, resolved_engine(NEWEST), spoil=at_17))
    (verdict,) = judge(PROGRAM, [target], SIZES)
    assert (verdict.status, verdict.counts[status], verdict.counts[RIGHT]) == (status, count, RUNS - count)
    assert verdict.failing == ({"T": 17},)
    assert words in verdict.message


def test_the_same_engine_unspoiled_is_right(resolved_engine: Callable[[str], ResolvedEngine], tmp_path: Path) -> None:
    target = TractNNEF(specific_tract_binary_path=make_cli(tmp_path, resolved_engine(NEWEST)))
    (verdict,) = judge(PROGRAM, [target], SIZES)
    assert verdict.status == RIGHT
    assert verdict.counts == {RIGHT: RUNS}


def test_what_export_raises_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    target = TractNNEF(NEWEST)
    steps = (Step("v0", "x[x > 0].cumsum(0)"), Step("v1", "v0.sum() * x"))
    (verdict,) = judge(Program(PROGRAM.inputs, steps, ("v1",), {"T": 5}, seed=3), [target], SIZES)
    assert verdict.status == REFUSED
    assert not verdict.failed

    def broken(*_: object, **__: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr("t2n_core.export.model.ModelExport.to", broken)
    (verdict,) = judge(PROGRAM, [target], SIZES)
    assert verdict.status == EXCEPTION
    assert verdict.failed
    assert "KeyError" in verdict.message


def test_a_failing_model_shrinks_to_a_test(
    resolved_engine: Callable[[str], ResolvedEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = resolved_engine(NEWEST)
    plain = judge_module.finding_of_outputs

    def spoiled(program: Program, reference: Reference, outputs: Sequence[Array]) -> Finding:
        wrong = "tanh" in program.source and reference.sizes["T"] > 16
        return plain(program, reference, [output + wrong for output in outputs])

    monkeypatch.setattr(judge_module, "finding_of_outputs", spoiled)
    (verdict,) = judge(PROGRAM, [TractNNEF(NEWEST, engine=engine)])
    assert verdict.status == WRONG
    text = shrunk(PROGRAM, verdict, [engine], seconds=20)
    compile(text, "snippet.py", "exec")
    assert "        v0 = torch.tanh(x)\n        return v0\n" in text


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_model_is_right_or_refused(seed: int, resolved_engine: Callable[[str], ResolvedEngine]) -> None:
    for judged in judge_seed(seed, [resolved_engine(version) for version in VERSIONS], rounds=0):
        for verdict in judged.verdicts:
            assert not verdict.failed, f"{judged.program.source}\n{verdict}"


@pytest.mark.parametrize("seed", RUNNING_SEEDS)
def test_running_operators_of_any_length_are_right(seed: int, resolved_engine: Callable[[str], ResolvedEngine]) -> None:
    (judged,) = judge_seed(seed, [resolved_engine(version) for version in VERSIONS], rounds=0, plan=RUNNERS)
    assert [verdict.status for verdict in judged.verdicts] == [RIGHT, RIGHT], judged.program.source


@pytest.mark.parametrize("seed", STATE_SEEDS)
def test_a_random_state_is_right(seed: int, resolved_engine: Callable[[str], ResolvedEngine]) -> None:
    (judged,) = judge_state_seed(seed, [resolved_engine(version) for version in VERSIONS])
    assert [verdict.status for verdict in judged.verdicts] == [RIGHT, RIGHT], f"{judged.program.source}{judged}"


def test_states_paired_by_position_are_found(
    resolved_engine: Callable[[str], ResolvedEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The places of the judge are those of the tree that it has drawn, and not the product's."""

    def by_position(self: ModelState, argument: str, value: Any, what: str) -> list[Tensor]:
        return [part for _, part in parts_at_any_depth(value) if isinstance(part, Tensor)]

    targets = targets_of([resolved_engine(NEWEST)])
    program = generate_state(STATE_IN_ANOTHER_ORDER)
    assert [verdict.status for verdict in judge_states(program, targets)] == [RIGHT]
    monkeypatch.setattr(ModelState, "_values", by_position)
    (verdict,) = judge_states(program, targets)
    assert verdict.status == WRONG
    assert "call 2 on the path declutter" in verdict.message


def test_a_right_state_whose_check_fails_is_found(
    resolved_engine: Callable[[str], ResolvedEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = ExportResult.check_parity

    def failing(self: ExportResult) -> Outcome:
        return replace(plain(self), status=Status.MISMATCH)

    monkeypatch.setattr(ExportResult, "check_parity", failing)
    (verdict,) = judge_states(generate_state(1), targets_of([resolved_engine(NEWEST)]))
    assert verdict.status == RED


@pytest.mark.parametrize("kind", ["", "--states"])
def test_several_processes_judge_the_models_of_a_command(kind: str, tmp_path: Path) -> None:
    """A process of multiprocessing does not import the `__main__` of a package: it would die at its first model."""
    file = tmp_path / "models.jsonl"
    command = (
        f"-m conformance.lab.fuzz {kind} --seed 2 --count 2 --mend 0 --tract {NEWEST} --offline --jobs 2 --json {file}"
    )
    subprocess.run([sys.executable, *command.split()], check=True, timeout=300, stdout=subprocess.DEVNULL)
    assert sorted(json.loads(line)["seed"] for line in file.read_text().splitlines()) == [2, 3]
