"""Emitter of a target whose graphs can have loops."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import Value
from t2n_core.nnef.sizes.dims import Dim

Step: TypeAlias = Callable[["LoopEmitter", list[Value], list[Value], list[Value]], tuple[list[Value], list[Value]]]
"""One step, written with the emitter of the body: (rows, states, tensors) -> (next states, rows of the results)."""


class LoopEmitter(Emitter):
    """Builds a graph for a target that has loops, whose bodies are fragments."""

    repacks_computed: bool
    """True if a loop packs a tensor that is computed outside of it again in each step, unlike a variable."""

    @abstractmethod
    def loop(
        self,
        step: Step,
        scanned: Sequence[Value],
        states: Sequence[Value],
        tensors: Sequence[Value] = (),
        *,
        backwards: bool = False,
    ) -> tuple[list[Value], list[Value]]:
        """Return the last states of a loop, and the rows that its steps return, in their order.

        Axis 0 of each of `scanned` counts the steps: a step takes a row of each, [1, …], the states, and all `tensors`.
        It returns the next states, in the same shapes, and rows [1, …]. With `backwards` the last row is the first
        step.
        """

    @abstractmethod
    def scan(self, count: Dim, *, outs: Sequence[Expected], **arguments: Any) -> tuple[Value, ...]:
        """Return the results of a loop over `count` steps, which begins with its initial states in each call."""
