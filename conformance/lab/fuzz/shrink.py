"""A smaller model that fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from conformance.lab.fuzz.edits import bypass_step, operands, renumber_steps
from conformance.lab.fuzz.program import Program, Step
from conformance.lab.fuzz.verdict import Verdict
from t2n_core.reduce.minimise import Minimiser, run_passes

Fails = Callable[[Program], Verdict | None]
"""The verdict of a program that fails in the same way, else None."""


class _Shrinking(Minimiser[Program]):
    """A program that fails, and a deadline. What was tried is not tried again."""

    def __init__(self, program: Program, fails: Fails, seconds: float) -> None:
        super().__init__(program)
        self._fails, self._deadline = fails, time.monotonic() + seconds
        self._tried = {self._key(program)}

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._deadline

    def tidy(self, candidate: Program) -> Program:
        return candidate.trimmed()

    def fails_alike(self, candidate: Program) -> bool:
        key = self._key(candidate)
        is_new = key not in self._tried
        self._tried.add(key)
        return is_new and self._fails(candidate) is not None

    @staticmethod
    def _key(program: Program) -> tuple[str, str, str]:
        return program.source, repr(program.inputs), repr(program.example)


def shrink(program: Program, fails: Fails, seconds: float = 60.0) -> Program:
    """Drops outputs, steps, inputs and dynamic axes, and makes the example small, as long as it still fails.

    Readers of a dropped step read one of its operands instead. A program that no longer runs does not count as failing.
    """
    state = _Shrinking(program, fails, seconds)
    for candidates in (_one_output, _prefixes):
        state.take_one(candidates)
    run_passes(state, [partial(_Shrinking.take_all, candidates=candidates) for candidates in _REPEATED])
    return renumber_steps(state.program)


def _one_output(program: Program) -> Iterator[Program]:
    if len(program.outputs) > 1:
        yield from (replace(program, outputs=(name,)) for name in program.outputs)


def _prefixes(program: Program) -> Iterator[Program]:
    """Yield programs with an earlier value as their only output."""
    for step in program.steps[:-1]:
        if step.is_tensor:
            yield replace(program, outputs=(step.name,))


def _without_runs_of_steps(program: Program) -> Iterator[Program]:
    """Remove half of the steps at once, then a quarter, and so on."""
    count = len(program.steps)
    width = count // 2
    while width > 1:
        for start in range(0, count, width):
            yield from _bypassed_all(program, program.steps[start : start + width])
        width //= 2


def _bypassed_all(program: Program, steps: tuple[Step, ...]) -> Iterator[Program]:
    for step in reversed(steps):
        replacements = operands(program, step)
        if not replacements:
            return
        program = bypass_step(program, step, replacements[0])
    yield program


def _without_steps(program: Program) -> Iterator[Program]:
    for step in reversed(program.steps):
        for operand in operands(program, step):
            yield bypass_step(program, step, operand)


def _fewer_axes(program: Program) -> Iterator[Program]:
    """Yield programs in which one symbol is the number that it was traced at."""
    if len(program.symbols) < 2:
        return
    for symbol in program.symbols:
        fixed = program.example[symbol]
        inputs = tuple(replace(i, dims=tuple(fixed if d == symbol else d for d in i.dims)) for i in program.inputs)
        yield replace(program, inputs=inputs, example={s: n for s, n in program.example.items() if s != symbol})


def _smaller_examples(program: Program) -> Iterator[Program]:
    for symbol, traced in program.example.items():
        for smaller in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16):
            # traced at 1 is the harder case: a model that fails traced at 2 or more stays there if it can
            if smaller < traced and not (smaller == 1 < traced):
                yield replace(program, example={**program.example, symbol: smaller})


_REPEATED = (_without_runs_of_steps, _without_steps, _fewer_axes, _smaller_examples)
