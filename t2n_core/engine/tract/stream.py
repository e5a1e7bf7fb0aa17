"""A graph that processes some steps of its time axis at a time, tract's pulse, run over whole sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2n_core.engine.protocol import Array
from t2n_core.engine.tract.driver import TractModel, TractRunnable
from t2n_core.errors import EngineRunError


@dataclass(frozen=True, slots=True)
class Stream:
    """A streaming graph: its steps per pulse, the streamed axis of each input and output, and the outputs' delays."""

    size: int
    input_axes: Sequence[int]
    output_axes: Sequence[int]
    delays: Sequence[int]

    @classmethod
    def of(cls, model: TractModel, pulse: Mapping[str, Any]) -> Stream:
        """Turn the model into a streaming one: `pulse` has `symbol` and `size`. Raises EngineOptimiseError."""
        model.pulse(pulse["symbol"], pulse["size"])
        input_axes, output_axes, delays = map(model.numbers, ("pulse.input_axes", "pulse.output_axes", "pulse.delay"))
        return cls(pulse["size"], input_axes, output_axes, delays)

    def run(self, runnable: TractRunnable, arrays: Sequence[Array]) -> list[Array]:
        """Return the outputs of a whole sequence that are known at its end, without the steps before the delay.

        The length of every array along its axis is a multiple of the pulse. Raises EngineRunError.
        """
        lengths = {array.shape[axis] for array, axis in zip(arrays, self.input_axes, strict=True)}
        if len(lengths) != 1 or min(lengths) % self.size:
            raise EngineRunError(f"sequences of {sorted(lengths)} steps are not a multiple of the pulse of {self.size}")
        steps = [self._pulse(arrays, start) for start in range(0, lengths.pop(), self.size)]
        late = zip(*runnable.run_steps(steps), strict=True)
        whole = zip(late, self.output_axes, self.delays, strict=True)
        return [np.take(y, range(delay, y.shape[axis]), axis) for y, axis, delay in _concatenate(whole)]

    def _pulse(self, arrays: Sequence[Array], start: int) -> list[Array]:
        places = range(start, start + self.size)
        return [np.take(array, places, axis) for array, axis in zip(arrays, self.input_axes, strict=True)]


def _concatenate(outputs: Any) -> Any:
    return ((np.concatenate(pulses, axis), axis, delay) for pulses, axis, delay in outputs)
