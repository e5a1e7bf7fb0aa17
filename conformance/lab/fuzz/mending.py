"""Removes refused steps from a model, so that the rest of it is judged too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from conformance.lab.fuzz.edits import without
from conformance.lab.fuzz.generator import FEWEST_OPERATORS
from conformance.lab.fuzz.judge import judge, references
from conformance.lab.fuzz.program import Program, Step
from conformance.lab.fuzz.verdict import REFUSED, Verdict
from t2n_core.inference_target import TractNNEF

_LINE = re.compile(r"fuzz_\w+\.py:(\d+)")


def judge_mended(
    program: Program, targets: Sequence[TractNNEF], rounds: int
) -> Iterator[tuple[Program, list[Verdict]]]:
    """Yield the model and its verdicts; then, up to `rounds` times, without the steps that every target refuses."""
    for mended in range(rounds + 1):
        verdicts = judge(program, targets)
        yield program, verdicts
        if mended == rounds or any(verdict.status != REFUSED for verdict in verdicts):
            return
        smaller = without_refused(program, verdicts[0].message)
        if smaller is None or smaller.operators < FEWEST_OPERATORS // 2:
            return
        program = smaller


def without_refused(program: Program, message: str) -> Program | None:
    """Return the program without the steps whose lines an error names; None without such lines, or if none is left."""
    lines = sorted({int(line) for line in _LINE.findall(message)}, reverse=True)
    steps = [step for step in map(program.step_at, lines) if step is not None]
    changed = program
    for step in steps:
        smaller = next(_that_run(changed, step), None)
        if smaller is None:
            return None
        changed = smaller
    return changed.trimmed() if steps else None


def _that_run(program: Program, step: Step) -> Iterator[Program]:
    if step.name not in {candidate.name for candidate in program.steps}:
        yield program
        return
    required_count = len(references(program)) // 2
    for smaller in without(program, step):
        if _runs(smaller, required_count):
            yield smaller


def _runs(program: Program, at_least: int) -> bool:
    reference_runs = references(program)
    return len(reference_runs) >= max(1, at_least) and reference_runs[0].sizes == dict(program.example)
