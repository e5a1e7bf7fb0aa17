"""Steps of a session, in the process that one of them may kill.

The archive stays loaded. Each step is answered by one event: `outputs`, `state` or `done`, `refused` if the engine
reports an error and the session continues, or `oom`, which ends it. State stays in tensors of the engine: arrays are
copied only where it is set or read.
"""

from __future__ import annotations

import ctypes as c
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from t2n_core.engine.processes.wire import Frame
from t2n_core.engine.protocol import Array
from t2n_core.engine.tract.driver import TractDriver, TractModel, TractRunnable
from t2n_core.engine.tract.job import Send, enter_stage
from t2n_core.errors import EngineError, EngineOptimiseError, EngineRunError

DETECT = "detect_kv_cache"
"""The transform that folds caches into the graph."""


class Steps(Protocol):
    """Runs steps, and keeps the state between them."""

    def run(self, arrays: Sequence[Array]) -> list[Array]: ...

    def read(self) -> list[Array]: ...

    def write(self, arrays: Sequence[Array]) -> None: ...


def perform_session(driver: TractDriver, job: Frame, send: Send, read: Callable[[], Frame | None]) -> None:
    """Send the events of a session: `stage`…, `opened` or a failure, and one event per step until the input ends."""
    times: dict[str, float] = {}
    try:
        steps = _open(driver, job, send, times)
    except EngineError as error:
        send({"event": "error", "message": str(error)})
        return
    send({"event": "opened", "times": times})
    try:
        while (frame := read()) is not None:
            _answer(steps, frame, send)
    except MemoryError:
        send({"event": "oom", "message": "an array of inputs, outputs or state does not fit"})


def _answer(steps: Steps, frame: Frame, send: Send) -> None:
    step = frame.header["step"]
    try:
        if step == "run":
            start = time.perf_counter()
            outputs = steps.run(frame.arrays())
            send({"event": "outputs", "seconds": time.perf_counter() - start}, outputs)
        elif step == "read":
            send({"event": "state"}, steps.read())
        else:
            steps.write(frame.arrays())
            send({"event": "done"})
    except EngineError as error:
        send({"event": "refused", "message": str(error)})


def _open(driver: TractDriver, job: Frame, send: Send, times: dict[str, float]) -> Steps:
    header = job.header
    pairs = header["session"]["state"]
    with enter_stage("load", times, send):
        model = driver.load(Path(header["archive"]))
        send({"event": "facts", "facts": {**model.facts(), "registries": driver.registries}})
    with enter_stage("optimise", times, send):
        if header["symbols"]:
            model.set_symbols(header["symbols"])
        if header["session"]["held"]:
            _fold_state(model, [input_index for input_index, _ in pairs])
            for transform in header["session"]["transforms"]:
                model.transform(transform)
            return _StatefulSteps(model.into_runnable(optimise=True, declutter=header["declutter"]))
        runnable = model.into_runnable(optimise=True, declutter=header["declutter"])
    return _FedSteps(driver, runnable, pairs)


def _fold_state(model: TractModel, places: Sequence[int]) -> None:
    """Fold the inputs at `places` into the graph. Raises EngineOptimiseError if one cannot be."""
    state = [model.facts()["input"][index][0] for index in places]
    model.transform(DETECT)
    left = [name for name, _ in model.facts()["input"] if name in state]
    if left:
        raise EngineOptimiseError(
            f"the engine cannot keep this state itself: its transform `{DETECT}` leaves {', '.join(left)}",
            hint="it folds an input that one concat extends by new values along a symbolic axis, into an output",
        )


class _FedSteps:
    """Steps whose state is fed from outputs to inputs, as tensors that never leave the engine."""

    def __init__(self, driver: TractDriver, runnable: TractRunnable, pairs: Sequence[Sequence[int]]) -> None:
        """Take the indices of an input and of its output for each state; `write` sets the first one."""
        self._driver, self._runnable = driver, runnable
        self._inputs, self._outputs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        self._state: list[c.c_void_p] = []

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Run one step and return its regular outputs. After an error the state is as before the step."""
        expected_count = self._runnable.inputs - len(self._state)
        if len(arrays) != expected_count:
            raise EngineRunError(f"{len(arrays)} inputs passed, the model takes {expected_count}")
        driver = self._driver
        with driver.tensors(arrays) as tensors:
            states = dict(zip(self._inputs, self._state, strict=True))
            rest = iter(tensors)
            order = [states[index] if index in states else next(rest) for index in range(self._runnable.inputs)]
            results = self._runnable.run_tensors(order)
        state = [results[index] for index in self._outputs]
        try:
            regular = driver.take_arrays([result for index, result in enumerate(results) if index not in self._outputs])
        except BaseException:
            driver.drop_tensors(state)
            raise
        driver.drop_tensors(self._state)
        self._state = state
        return regular

    def read(self) -> list[Array]:
        return [self._driver.read_tensor(tensor) for tensor in self._state]

    def write(self, arrays: Sequence[Array]) -> None:
        """Replace the state. Raises EngineRunError for a dtype that the engine does not have; it is then unchanged."""
        made: list[c.c_void_p] = []
        try:
            made.extend(map(self._driver.make_tensor, arrays))
        except BaseException:
            self._driver.drop_tensors(made)
            raise
        self._driver.drop_tensors(self._state)
        self._state = made


class _StatefulSteps:
    """Steps whose state the engine keeps; it can be neither read nor set, and `write` of nothing resets it."""

    def __init__(self, runnable: TractRunnable) -> None:
        self._runnable, self._state = runnable, runnable.spawn()

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return self._state.run(arrays)

    def read(self) -> list[Array]:
        raise EngineRunError("the state that the engine keeps cannot be read")

    def write(self, arrays: Sequence[Array]) -> None:
        if arrays:
            raise EngineRunError("the engine takes no state, since it keeps its own")
        self._state = self._runnable.spawn()
