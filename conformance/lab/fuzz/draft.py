"""A model being generated: every step runs in eager mode at several sizes as soon as it is added."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from conformance.lab.fuzz.program import NAMESPACE, Input, Program, Sizes, Step, names_in, with_weights

MOST_ELEMENTS = 12_000
LARGEST_NUMBER = 25.0
LARGEST_SIZE = 150
MOST_AXES = 5
MOST_LENGTHS = 9
"""Different computed sizes in one model; every further one makes capture slower, and no model has more."""
_FEWEST_RUNS = 3
"""Least number of sizes, besides the example's, at which each step has to run."""


class Rejected(Exception):  # noqa: N818  not an error: another step is drawn
    """The step is impossible or unwanted."""


class Run:
    """The values of all names at one assignment of sizes."""

    def __init__(self, sizes: Sizes, values: dict[str, Any]) -> None:
        self.sizes = dict(sizes)
        self.values = values
        self.alive = True


class Draft:
    """The steps so far, and what they compute at each of the sizes that are tried; the first is the example's."""

    def __init__(self, inputs: Sequence[Input], tried: Sequence[Sizes], seed: int) -> None:
        self.rng = random.Random(f"draft {seed}")
        self.inputs = tuple(inputs)
        self.seed = seed
        self.steps: list[Step] = []
        self.allows_empty = self.rng.random() < 0.3
        self.allows_failures = self.rng.random() < 0.2
        self.deepest = self.rng.choice((2, 2, 3, 3, 4))
        self._layers = SimpleNamespace()
        self.runs: list[Run] = []
        for sizes in tried:
            drawn = torch.Generator().manual_seed(seed)
            values: dict[str, Any] = {i.name: i.draw(sizes, drawn) for i in inputs}
            self.runs.append(Run(sizes, values))
        self._lengths: dict[tuple[int, ...], tuple[int, str]] = {}
        for spec in inputs:
            for axis in self.moving(spec.name):
                self._lengths[self._all_extents(spec.name, axis)] = (0, spec.name)

    # ------------------------------------------------------------------------------------------------------ writing
    def tensor(self, text: str, layer: str = "") -> str:
        """Add `v… = text`. Raises Rejected if it does not run, or if its result is useless to a model."""
        return self._add("v", text, layer, self._judge_tensor)

    def size(self, text: str) -> str:
        """Add `n… = text`, a size or another integer computed from sizes. Raises Rejected."""
        return self._add("n", text, "", self._judge_size)

    def condition(self, text: str) -> str:
        """Add `c… = text`, a condition on which Python decides. Raises Rejected."""
        return self._add("c", text, "", self._judge_condition)

    def _add(self, kind: str, text: str, layer: str, judge: Callable[[Any, bool], None]) -> str:
        name = f"{kind}{len(self.steps)}"
        step = Step(name, text, layer)
        scope = {**NAMESPACE, "self": self._layers}
        if layer:
            torch.manual_seed(self.seed + len(self.steps))
            try:
                self._layers.LAYER = with_weights(eval(layer, scope).eval())
            except Exception as cause:
                raise Rejected(layer) from cause
        code = compile(text, "<step>", "eval")
        results: list[Any] = []
        for index, run in enumerate(self.runs):
            value = None
            if run.alive:
                try:
                    with torch.no_grad():
                        value = eval(code, {**scope, **run.values})  # as globals: a comprehension reads no locals
                    judge(value, index == 0)
                except Exception as cause:
                    if index == 0 or not self.allows_failures:
                        raise Rejected(text) from cause
                    value = None
            results.append(value)
        if sum(value is not None for value in results) <= _FEWEST_RUNS:
            raise Rejected(text)
        self._learn_lengths(step, results)
        for run, value in zip(self.runs, results, strict=True):
            run.alive = run.alive and value is not None
            run.values[name] = value
        self.steps.append(step)
        return name

    def _learn_lengths(self, step: Step, results: Sequence[Any]) -> None:
        """Note how many computations lie between the inputs' sizes and a new one. Raises Rejected for too many."""
        if step.is_condition:
            return
        if step.is_size:
            lengths = {tuple(-1 if value is None else int(value) for value in results)}
        else:
            lengths = {self._extents_of(results, axis) for axis in range(results[0].dim())}
        new = {extents for extents in lengths if len(set(extents) - {-1}) > 1 and extents not in self._lengths}
        if not new:
            return
        depth = 1 + max((self._depth_of(name) for name in step.reads), default=0)
        if depth > self.deepest or len(self._lengths) >= MOST_LENGTHS:
            raise Rejected(step.text)
        self._lengths.update(dict.fromkeys(new, (depth, step.name)))

    def _depth_of(self, name: str) -> int:
        values = [run.values.get(name) for run in self.runs]
        if isinstance(values[0], bool):
            return 0
        if isinstance(values[0], int):
            vectors = [tuple(-1 if value is None else int(value) for value in values)]
        elif isinstance(values[0], Tensor):
            vectors = [self._extents_of(values, axis) for axis in range(values[0].dim())]
        else:
            return 0
        return max((self._lengths[vector][0] for vector in vectors if vector in self._lengths), default=0)

    @staticmethod
    def _extents_of(values: Sequence[Any], axis: int) -> tuple[int, ...]:
        return tuple(
            int(value.shape[axis]) if value is not None and -value.dim() <= axis < value.dim() else -1
            for value in values
        )

    def _all_extents(self, name: str, axis: int) -> tuple[int, ...]:
        return self._extents_of([run.values[name] for run in self.runs], axis)

    def _judge_tensor(self, value: Any, _: bool) -> None:
        if not isinstance(value, Tensor) or value.dim() > MOST_AXES or value.numel() > MOST_ELEMENTS:
            raise Rejected
        if not value.numel():
            if not self.allows_empty:
                raise Rejected
        elif value.is_floating_point():
            largest = float(value.abs().amax())
            if not largest <= LARGEST_NUMBER:
                raise Rejected
        elif not value.dtype.is_floating_point and value.dtype != torch.bool and int(value.abs().amax()) > 10_000:
            raise Rejected

    def _judge_size(self, value: Any, _: bool) -> None:
        if type(value) is not int or abs(value) > LARGEST_SIZE:
            raise Rejected

    @staticmethod
    def _judge_condition(value: Any, _: bool) -> None:
        if type(value) is not bool:
            raise Rejected

    def undo_to(self, count: int) -> None:
        """Remove all steps from `count` on, and restore the runs that they ended."""
        for step in self.steps[count:]:
            for run in self.runs:
                run.values.pop(step.name, None)
        del self.steps[count:]
        for run in self.runs:
            run.alive = all(run.values[step.name] is not None for step in self.steps)
        remaining_names = {step.name for step in self.steps} | {spec.name for spec in self.inputs}
        self._lengths = {extents: entry for extents, entry in self._lengths.items() if entry[1] in remaining_names}

    # ------------------------------------------------------------------------------------------------------ looking
    @property
    def living(self) -> list[Run]:
        return [run for run in self.runs if run.alive]

    def values(self, name: str) -> list[Any]:
        return [run.values[name] for run in self.living]

    def example(self, name: str) -> Tensor:
        tensor: Tensor = self.runs[0].values[name]
        return tensor

    def rank(self, name: str) -> int:
        return self.example(name).dim()

    def extents(self, name: str, axis: int) -> tuple[int, ...]:
        """Return the sizes of one axis, over all runs."""
        return self._extents_of(self.values(name), axis)

    def fixed(self, name: str, axis: int) -> int | None:
        """Return the size of an axis that is the same in all runs."""
        extents = set(self.extents(name, axis))
        return extents.pop() if len(extents) == 1 else None

    def moving(self, name: str) -> list[int]:
        """Return the axes whose size varies."""
        return [axis for axis in range(self.rank(name)) if self.fixed(name, axis) is None]

    def tensors(self, accepts: Callable[[str], bool] = lambda _: True, kind: str = "f") -> list[str]:
        """Names of tensors in the order of their steps; `kind`: f(loat), i(nteger), b(ool)."""
        names = [spec.name for spec in self.inputs] + [step.name for step in self.steps if step.is_tensor]
        return [name for name in names if kind_of(self.example(name)) in kind and accepts(name)]

    # ------------------------------------------------------------------------------------------------------ choosing
    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def one_of(self, choices: Sequence[Any]) -> Any:
        if not choices:
            raise Rejected
        return self.rng.choice(choices)

    def randint(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`. Raises Rejected if there is none."""
        if high < low:
            raise Rejected
        return self.rng.randint(low, high)

    def pick(self, accepts: Callable[[str], bool] = lambda _: True, kind: str = "f") -> str:
        """Return a tensor, mostly a late one and one with an axis that varies. Raises Rejected if there is none."""
        candidates = self.tensors(accepts, kind)
        if self.chance(0.8):
            candidates = [name for name in candidates if self.moving(name)] or candidates
        if not candidates:
            raise Rejected
        unread = [name for name in candidates if not any(name in names_in(step.text) for step in self.steps)]
        if unread and self.chance(0.7):
            return str(self.one_of(unread))
        return str(self.one_of(candidates[-4:] if self.chance(0.6) else candidates))

    def axis(self, name: str, moving: float = 0.8) -> int:
        """Return an axis of a tensor, with that probability one whose size varies."""
        moving_axes = self.moving(name)
        return int(self.one_of(moving_axes if moving_axes and self.chance(moving) else range(self.rank(name))))

    def extent(self, name: str, axis: int) -> str:
        """Return the size of an axis as text: a number if it is fixed, mostly, else a step `n… = v….shape[…]`."""
        fixed = self.fixed(name, axis)
        if fixed is not None and self.chance(0.9):
            return str(fixed)
        text = f"{name}.shape[{axis}]"
        step_names = [step.name for step in self.steps if step.text == text]
        return step_names[0] if step_names else self.size(text)

    def program(self, outputs: Sequence[str]) -> Program:
        return Program(self.inputs, tuple(self.steps), tuple(outputs), self.runs[0].sizes, self.seed).trimmed()


def kind_of(value: Tensor) -> str:
    if value.is_floating_point():
        return "f"
    return "b" if value.dtype == torch.bool else "i"
