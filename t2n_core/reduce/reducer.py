"""The order of passes, and the result of a reduction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from t2n_core.errors import InputError
from t2n_core.reduce.failure import Failure
from t2n_core.reduce.judge import Judge
from t2n_core.reduce.minimise import run_passes
from t2n_core.reduce.passes.cuts import (
    bypass_assignments,
    earliest_failing_output,
    fewer_assignments,
    fewer_declarations,
    fewer_outputs,
    first_wrong_value,
    fixed_sizes,
    last_assignments,
    merged_inputs,
    weights_as_inputs,
)
from t2n_core.reduce.passes.details import inlined_fragments, plainer_arguments, plainer_bodies, rounder_numbers
from t2n_core.reduce.passes.sizes import fewer_axes, shorter_axes
from t2n_core.reduce.program import Program
from t2n_core.reduce.reduction import Reduction

Pass = Callable[[Reduction], None]
FIRST: Final[Sequence[Pass]] = (
    fewer_declarations,
    fixed_sizes,
    fewer_outputs,
    first_wrong_value,
    earliest_failing_output,
    last_assignments,
)
REPEATED: Final[Sequence[Pass]] = (
    fewer_assignments,
    fewer_declarations,
    inlined_fragments,
    bypass_assignments,
    weights_as_inputs,
    merged_inputs,
    shorter_axes,
    fewer_axes,
    plainer_arguments,
    plainer_bodies,
    fewer_outputs,
)
_ROUNDS: Final = 5


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """A program that fails in the same way as the original, and that no pass can make smaller."""

    program: Program
    failure: Failure
    blamed: str
    """The operator that fails."""
    runs: int
    """Runs of the engine."""
    complete: bool
    """False if the time was used up; reduce the result again to continue."""


def reduce_program(
    program: Program, judge: Judge, *, progress: Callable[[str, Program], None] = lambda name, program: None
) -> Reduced:
    """Return the smallest program that still fails in the same way. `progress` gets each pass, with its result.

    Raises InputError for a program that does not fail.
    """
    failure = judge.first(program)
    if failure is None:
        raise _no_failure(judge)
    state = Reduction(program, judge, failure)

    def after(pass_: Pass) -> None:
        progress(pass_.__name__.replace("_", " "), state.program)

    for passes, rounds in ((FIRST, 1), (REPEATED, _ROUNDS), ([rounder_numbers], 1)):
        run_passes(state, passes, rounds, after)
    return Reduced(state.program, failure, state.blamed, judge.runs, not judge.is_over)


def _no_failure(judge: Judge) -> InputError:
    name = f"{judge.engine.name} {judge.engine.version}"
    if judge.oracle is None:
        return InputError(
            f"cannot prove that the values of {name} are wrong",
            hint="use a release that computes them correctly as the oracle",
        )
    return InputError(
        f"the oracle, {judge.oracle.name}, computes what {name} does",
        hint="if both are wrong, the graph is, and not the engine: --t2n-bisect names its first wrong node",
    )
