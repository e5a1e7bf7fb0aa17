"""The state of a reduction: the smallest program so far, and the test for a smaller one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from t2n_core.reduce.failure import Failure
from t2n_core.reduce.judge import Judge
from t2n_core.reduce.minimise import Minimiser
from t2n_core.reduce.program import Array, Program


class Reduction(Minimiser[Program]):
    """A program that fails, made smaller by passes."""

    def __init__(self, program: Program, judge: Judge, failure: Failure) -> None:
        super().__init__(program)
        self.judge, self.failure = judge, failure
        self.blamed = ""
        """The operator that fails, once it is known: candidates without it fail for another reason."""
        self._values: tuple[str, dict[str, Array]] = ("", {})

    @property
    def is_over(self) -> bool:
        return self.judge.is_over

    def tidy(self, candidate: Program) -> Program:
        return candidate.prune()

    def fails_alike(self, candidate: Program) -> bool:
        if not candidate.outputs or not candidate.assignments:
            return False
        if self.blamed and all(assignment.operator != self.blamed for assignment in candidate.assignments):
            return False
        defined = {*candidate.inputs, *candidate.weights, *candidate.results()}
        if not defined.issuperset(candidate.outputs) or not set(candidate.outputs).isdisjoint(candidate.inputs):
            return False
        return self.judge.failure(candidate) == self.failure

    def values(self, names: Collection[str]) -> Mapping[str, Array]:
        """Return the right values of these results, as far as they are available.

        They are from one run that outputs all results, or a run that outputs these.
        """
        key = self.program.text()
        if self._values[0] != key:
            self._values = (key, dict(self.judge.values(self.program, self.program.results()) or {}))
        values = self._values[1]
        missing = [name for name in names if name not in values]
        if missing:
            values |= self.judge.values(self.program, missing) or {}
        return values

    def with_outputs(self, *names: str) -> Program:
        return replace(self.program, outputs=names)
