"""A graph that processes some steps of its time axis at a time, tract's pulse, run over whole sequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t2n_core.engine.protocol import Array
from t2n_core.engine.tract.driver import TractDriver, TractModel, TractRunnable
from t2n_core.engine.tract.profile_job import Send
from t2n_core.errors import EngineError, EngineRunError

STREAM = "stream"
"""Fact of a reply: the fields of the stream that was written."""


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
        return self.join(runnable.run_steps(list(self.split_pulses(arrays))))

    def split_pulses(self, arrays: Sequence[Array]) -> Iterator[list[Array]]:
        """Yield the inputs of each pulse of whole sequences.

        Raises EngineRunError for sequences that are not as many whole pulses each.
        """
        lengths = {array.shape[axis] for array, axis in zip(arrays, self.input_axes, strict=True)}
        if len(lengths) != 1 or min(lengths) % self.size:
            raise EngineRunError(f"sequences of {sorted(lengths)} steps are not a multiple of the pulse of {self.size}")
        for start in range(0, lengths.pop(), self.size):
            places = range(start, start + self.size)
            yield [np.take(array, places, axis) for array, axis in zip(arrays, self.input_axes, strict=True)]

    def join(self, pulses: Sequence[Sequence[Array]]) -> list[Array]:
        """Return the pulses' outputs joined, without the steps before the delay."""
        outputs = []
        for late, axis, delay in zip(zip(*pulses, strict=True), self.output_axes, self.delays, strict=True):
            y = np.concatenate(late, axis)
            outputs.append(np.take(y, range(delay, y.shape[axis]), axis))
        return outputs


def write_model(driver: TractDriver, header: Mapping[str, Any], send: Send, stage: Any) -> None:
    """Load a file, turn it into a stream if a pulse is set, and write it to a new folder as the engine does.

    The axes and delays of a stream are sent as a fact. Raises EngineError.
    """
    with stage("load"):
        model = driver.load(Path(header["archive"]))
    with stage("optimise"):
        if header["symbols"]:
            model.set_symbols(header["symbols"])
        model.declutter()
        stream = Stream.of(model, header["pulse"]) if header["pulse"] else None
        folder = header["folder"]
        try:
            driver.write(model, Path(folder))
        except EngineError as error:  # whose message names a folder that no longer exists
            raise type(error)(str(error).replace(folder, "the written archive")) from None
    if stream is None:
        return
    axes = {"input_axes": list(stream.input_axes), "output_axes": list(stream.output_axes)}
    send({"event": "facts", "facts": {STREAM: {"size": stream.size, **axes, "delays": list(stream.delays)}}})
