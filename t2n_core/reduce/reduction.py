"""The state of a reduction: the smallest program so far, and the test that a smaller one has to pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from t2n_core.reduce.failure import Failure
from t2n_core.reduce.judge import Judge
from t2n_core.reduce.program import Array, Program


class Reduction:
    """A program that fails, made smaller by passes."""

    def __init__(self, program: Program, judge: Judge, failure: Failure) -> None:
        self.program, self.judge, self.failure = program, judge, failure
        self.blamed = ""
        """The operator that fails, once it is known: candidates without it fail of something else."""
        self.taken = 0
        """Candidates that became the program."""
        self._values: tuple[str, dict[str, Array]] = ("", {})

    def fails(self, candidate: Program) -> bool:
        """Return whether a candidate fails as the first program does."""
        candidate = candidate.pruned()
        if not candidate.outputs or not candidate.assignments or self.judge.is_over:
            return False
        if self.blamed and all(one.operator != self.blamed for one in candidate.assignments):
            return False
        defined = {*candidate.inputs, *candidate.weights, *candidate.results()}
        if not defined.issuperset(candidate.outputs) or not set(candidate.outputs).isdisjoint(candidate.inputs):
            return False
        return self.judge.failure(candidate) == self.failure

    def take(self, candidate: Program | None) -> bool:
        """Make a candidate the program, if it fails alike."""
        if candidate is None or not self.fails(candidate):
            return False
        self.program = candidate.pruned()
        self.taken += 1
        return True

    def values(self, names: Collection[str]) -> Mapping[str, Array]:
        """Return the right values of these results, as far as they can be had: from one run that shows all results,
        else from one that shows these."""
        key = self.program.text()
        if self._values[0] != key:
            self._values = (key, dict(self.judge.values(self.program, self.program.results()) or {}))
        known = self._values[1]
        missing = [name for name in names if name not in known]
        if missing:
            known |= self.judge.values(self.program, missing) or {}
        return known

    def with_outputs(self, *names: str) -> Program:
        return replace(self.program, outputs=names)


def minimised(names: list[str], attempt: Callable[[list[str]], bool]) -> list[str]:
    """Return names that cannot be done without, by delta debugging: `attempt` tries fewer of them, and keeps those
    that do."""
    parts = 2
    while len(names) > 1:
        size = max(1, -(-len(names) // parts))
        for start in range(0, len(names), size):
            fewer = names[:start] + names[start + size :]
            if fewer and attempt(fewer):
                names = fewer
                parts = max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(len(names), 2 * parts)
    return names


__all__ = ["Reduction", "minimised"]
