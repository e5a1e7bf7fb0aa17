"""Calls in States that have run before, as in a server, compared with calls in a new State."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2n_core.engine.protocol import Array
from t2n_core.engine.tract.driver import TractRunnable, TractState
from t2n_core.engine.tract.profile_job import Send
from t2n_core.errors import EngineRunError


class KeptCalls:
    """The batches of a job, each run in its own State, and later calls in these States."""

    def __init__(self, runnable: TractRunnable, calls: Sequence[tuple[int, int]]) -> None:
        """Take pairs of batches: one whose State is reused, and the batch that then runs in it."""
        self._runnable, self._calls = runnable, calls
        self._states: dict[int, TractState | None] = {state: None for state, _ in calls}
        self._fresh: dict[int, tuple[Sequence[Array], Sequence[Array]] | None] = {batch: None for _, batch in calls}

    def run(self, number: int, batch: Sequence[Array]) -> list[Array]:
        """Return the outputs of a batch in a new State. Raises EngineRunError."""
        if number not in self._states:
            outputs = self._runnable.run(batch)
        else:
            state = self._runnable.spawn()
            outputs = state.run(batch)
            self._states[number] = state
        if number in self._fresh:
            self._fresh[number] = batch, outputs
        return outputs

    def run_again(self, send: Send) -> None:
        """Run the calls whose batches have run, and send `changed` for each whose outputs differ, or that fails."""
        for index, (number, batch) in enumerate(self._calls):
            state, fresh = self._states[number], self._fresh[batch]
            if state is None or fresh is None:
                continue
            try:
                outputs = state.run(fresh[0])
            except EngineRunError as error:
                self._states[number] = None
                send({"event": "changed", "call": index, "message": str(error)})
            else:
                if not are_same(outputs, fresh[1]):
                    send({"event": "changed", "call": index}, outputs)


def are_same(outputs: Sequence[Array], others: Sequence[Array]) -> bool:
    """Return whether outputs have the same dtypes, shapes and elements; NaN equals NaN."""
    return all(
        output.dtype == other.dtype and np.array_equal(output, other, equal_nan=output.dtype.kind in "fc")
        for output, other in zip(outputs, others, strict=True)
    )
