"""The check of a program: its outputs in an engine against the model's own loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from t2n_core.errors import InputError
from t2n_core.export.result import ExportResult
from t2n_core.parity.comparison import OutputComparison, compare_outputs
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import ErrorInfo, Outcome
from t2n_core.parity.outcomes import WEAK_CHECK
from t2n_core.parity.samples import Array
from t2n_core.parity.stage import Stage, Status
from t2n_core.parity.table import comparison_table
from t2n_core.parity.tolerance import LEVELS, TractCheckTolerance
from t2n_core.program.calls import ModuleCalls, engine_calls
from t2n_core.program.driver import Call, run_program
from t2n_core.program.program import Program, as_array

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """The result of the check of a program in one engine."""

    outcome: Outcome
    """Status, stage and engine, as for any check; each of `outputs` is from the example where it is worst."""
    calls: Mapping[str, int]
    """Calls of each archive, over all examples."""
    part: str = ""
    """The archive whose own check failed."""

    @property
    def passed(self) -> bool:
        """Return whether all outputs agree with the reference."""
        return self.outcome.passed

    def describe(self) -> str:
        """Return the result as text for a terminal."""
        counted = ", ".join(f"{name} {count}" for name, count in self.calls.items())
        where = f"{self.part}: " if self.part else ""
        return f"{where}{self.outcome.describe()}\ncalls: {counted}"

    def raise_for_failure(self) -> ProgramOutcome:
        """Return the outcome itself if it is a pass, and raise otherwise, as `Outcome.raise_for_failure` does."""
        __tracebackhide__ = True
        self.outcome.raise_for_failure()
        return self


def check_with_modules(program: Program, manifest: Manifest, parts: Mapping[str, ExportResult]) -> dict[str, int]:
    """Run a program with PyTorch's modules instead of archives, and return the number of calls of each.

    Raises InputError if its outputs differ from the reference's, or if an archive would not take its inputs: then the
    statements are wrong, not an archive.
    """
    calls = ModuleCalls(parts)
    for index, example in enumerate(program.examples):
        expected, got = program.expected(example), _run(program, manifest, example, calls)
        compared = _compare(program, expected, got, Judgement())
        if not all(output.passed for output in compared):
            raise InputError(
                f"the program differs from its reference on example {index}, with PyTorch's modules in place of its "
                f"archives:\n{comparison_table(compared)}",
                hint="mend the statements, or the reference",
            )
    if unused := [name for name in parts if not calls.count[name]]:
        raise InputError(f"no example runs {', '.join(unused)}", hint="add an example that does")
    return {name: calls.count[name] for name in parts}


def check_program(
    program: Program,
    manifest: Manifest,
    parts: Mapping[str, ExportResult],
    calls: Mapping[str, int],
    criteria: Judgement,
    timeout: float,
) -> ProgramOutcome:
    """Run a program on all examples in the engine of its archives, and compare with the reference.

    `calls` are the call counts that `check_with_modules` returned. A failure names the first call whose outputs differ
    from its module's for the same inputs. A pass is weak if an output is the same for all examples.
    """
    engine = next(iter(parts.values())).target.engine()
    common: dict[str, Any] = {"engine": f"{engine.name} {engine.version}", "required": criteria.required}
    expected = [program.expected(example) for example in program.examples]
    worst: tuple[OutputComparison, ...] = ()
    try:
        with engine_calls(parts, timeout) as call:
            for index, example in enumerate(program.examples):
                got = _run(program, manifest, example, call)
                compared = _compare(program, expected[index], got, criteria)
                if not all(output.passed for output in compared):
                    outcome = _mismatch(program, manifest, parts, index, compared, criteria, call)
                    return ProgramOutcome(replace(outcome, **common), calls)
                worst = compared if not worst else tuple(map(_worse, worst, compared))
    except Exception as error:
        return ProgramOutcome(Outcome.from_error(error, Stage.RUN, **common), calls)
    level = max((output.level for output in worst if output.level), key=lambda level: level.rank, default=LEVELS[0])
    same = [name for name in program.outputs if _proves_little([outputs[name] for outputs in expected])]
    return ProgramOutcome(_pass_or_weak(same, len(expected), level, worst, common), calls)


def _pass_or_weak(
    same: Sequence[str],
    examples: int,
    level: TractCheckTolerance,
    outputs: tuple[OutputComparison, ...],
    common: Mapping[str, Any],
) -> Outcome:
    if not same:
        return Outcome(Status.PASS, Stage.COMPARE, level=level, outputs=outputs, **common)
    why = f"{', '.join(same)} is the same for all examples, or one integer over and over"
    if examples == 1:
        why = "there is only one example"
    info = ErrorInfo.of(Stage.COMPARE, WEAK_CHECK, why, hint="give examples with different outputs")
    return Outcome(Status.WEAK, Stage.COMPARE, level=level, outputs=outputs, error=info, **common)


def _mismatch(
    program: Program,
    manifest: Manifest,
    parts: Mapping[str, ExportResult],
    index: int,
    outputs: tuple[OutputComparison, ...],
    criteria: Judgement,
    call: Call,
) -> Outcome:
    """Return the outcome of an example with wrong outputs, with the first call that is wrong."""
    first = _first_wrong_call(program, manifest, parts, index, criteria, call)
    bad = ", ".join(output.name for output in outputs if not output.passed)
    info = ErrorInfo.of(Stage.COMPARE, "ParityError", f"{bad} of the program differs on example {index}: {first}")
    return Outcome(Status.MISMATCH, Stage.COMPARE, outputs=outputs, error=info)


def _first_wrong_call(
    program: Program, manifest: Manifest, parts: Mapping[str, ExportResult], index: int, criteria: Judgement, call: Call
) -> str:
    """Return the first call in the engine whose outputs differ from its module's, as text."""
    modules = ModuleCalls(parts)
    wrong: list[str] = []

    def both(name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        got, expected = call(name, inputs), modules(name, inputs)
        if not wrong:
            pairs = [(expected[output_name], got[output_name]) for output_name in parts[name].output_names]
            names = parts[name].output_names
            compared = compare_outputs(*zip(*pairs, strict=True), names=names, criteria=Judgement(criteria.level))
            differing = [output for output in compared if not output.passed]
            if differing:
                wrong.append(f"first in call {modules.count[name]} of {name}\n{comparison_table(differing)}")
        return got

    try:
        _run(program, manifest, program.examples[index], both)
    except InputError as refused:
        return refused.message
    return wrong[0] if wrong else f"each call is within `{criteria.level.value}`, and their errors add up"


def _run(program: Program, manifest: Manifest, example: Mapping[str, Any], call: Call) -> dict[str, Array]:
    inputs = {name: as_array(value) for name, value in example.items()}
    try:
        return run_program(manifest, inputs, call)
    except (ValueError, IndexError, KeyError, TypeError, RuntimeError) as error:
        raise InputError(f"a statement of the program fails: {type(error).__name__}: {error}") from error


def _compare(
    program: Program, expected: Mapping[str, Array], got: Mapping[str, Array], criteria: Judgement
) -> tuple[OutputComparison, ...]:
    names = list(program.outputs)
    return compare_outputs(
        [expected[name] for name in names], [got[name] for name in names], names=names, criteria=criteria
    )


def _worse(current: OutputComparison, other: OutputComparison) -> OutputComparison:
    ranks = [-1 if comparison.level is None else comparison.level.rank for comparison in (current, other)]
    return other if (ranks[1], other.max_abs) > (ranks[0], current.max_abs) else current


def _proves_little(arrays: Sequence[Array]) -> bool:
    """Return whether an output is the same for all examples, or has one integer as all its elements."""
    if arrays[0].dtype.kind in "iu" and len(np.unique(np.concatenate([array.ravel() for array in arrays]))) < 2:
        return True
    return all(np.array_equal(arrays[0], array, equal_nan=arrays[0].dtype.kind == "f") for array in arrays[1:])
