"""Calls in States that are kept from call to call, as a server makes them, beside those in a fresh State each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from t2n_core.engine.protocol import Array
from t2n_core.engine.tract.driver import TractRunnable, TractState
from t2n_core.engine.tract.profile_job import Send
from t2n_core.errors import EngineRunError


def run_kept_calls(
    runnable: TractRunnable,
    calls: Sequence[tuple[int, int]],
    batches: Mapping[int, Sequence[Array]],
    fresh: Mapping[int, Sequence[Array]],
    send: Send,
) -> None:
    """Run `calls`, pairs of a State's number and a batch's, and send a `changed` for each with other outputs.

    `fresh` are the outputs of the batches in a fresh State.
    A State that answers with an error is not used again: its later calls begin in a new one.
    """
    states: dict[int, TractState] = {}
    for place, (number, batch) in enumerate(calls):
        try:
            state = states[number] = states.get(number) or runnable.spawn()
            outputs = state.run(batches[batch])
        except EngineRunError as error:
            states.pop(number, None)
            send({"event": "changed", "call": place, "message": str(error)})
        else:
            if not all(map(_are_same, outputs, fresh[batch])):
                send({"event": "changed", "call": place}, outputs)


def _are_same(one: Array, other: Array) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


__all__ = ["run_kept_calls"]
