"""The work of a session, in the process that one of its steps may kill.

The archive stays loaded. Each step is answered by one event: `outputs`, `state` or `done`, `refused` if the engine
answers with an error and the session goes on, or `oom`, which ends it. State stays in tensors of the engine: its arrays
are copied where they are set or read, and nowhere else.
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
from t2n_core.engine.tract.job import Send, entered
from t2n_core.errors import EngineError, EngineOptimiseError, EngineRunError

DETECT = "detect_kv_cache"
"""The transform that folds caches into the graph."""


class Steps(Protocol):
    """Runs steps, and keeps what one leaves for the next."""

    def run(self, arrays: Sequence[Array]) -> list[Array]: ...

    def read(self) -> list[Array]: ...

    def write(self, arrays: Sequence[Array]) -> None: ...


def perform_session(driver: TractDriver, job: Frame, send: Send, read: Callable[[], Frame | None]) -> None:
    """Send the events of a session: `stage`…, `opened` or a failure, and one event per step until none comes."""
    times: dict[str, float] = {}
    try:
        steps = _opened(driver, job, send, times)
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


def _opened(driver: TractDriver, job: Frame, send: Send, times: dict[str, float]) -> Steps:
    header = job.header
    pairs = header["session"]["state"]
    with entered("load", times, send):
        model = driver.load(Path(header["archive"]))
        send({"event": "facts", "facts": {**model.facts(), "registries": driver.registries}})
    with entered("optimise", times, send):
        if header["symbols"]:
            model.set_symbols(header["symbols"])
        if header["session"]["held"]:
            return _Held(_folded(model, [place for place, _ in pairs]))
        runnable = model.into_runnable(optimise=True)
    return _Fed(driver, runnable, pairs)


def _folded(model: TractModel, places: Sequence[int]) -> TractRunnable:
    """Return the graph with the inputs at `places` held inside. Raises EngineOptimiseError if one of them is not."""
    state = [model.facts()["input"][place][0] for place in places]
    model.transform(DETECT)
    left = [name for name, _ in model.facts()["input"] if name in state]
    if left:
        raise EngineOptimiseError(
            f"the engine cannot hold this state inside: its transform `{DETECT}` leaves {', '.join(left)}",
            hint="it takes an input that one concat joins with what is new along a symbolic axis, to give an output",
        )
    return model.into_runnable(optimise=True)


class _Fed:
    """Steps whose state is fed from outputs to inputs, as tensors that never leave the engine."""

    def __init__(self, driver: TractDriver, runnable: TractRunnable, pairs: Sequence[Sequence[int]]) -> None:
        """Take the places of an input and of its output for each state; `write` gives the first one."""
        self._driver, self._runnable = driver, runnable
        self._inputs, self._outputs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        self._state: list[c.c_void_p] = []

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Run one step and return its regular outputs. After an error the state is as before the step."""
        wanted = self._runnable.inputs - len(self._state)
        if len(arrays) != wanted:
            raise EngineRunError(f"{len(arrays)} inputs given, the model takes {wanted}")
        driver = self._driver
        with driver.tensors(arrays) as made:
            given = dict(zip(self._inputs, self._state, strict=True))
            rest = iter(made)
            order = [given[place] if place in given else next(rest) for place in range(self._runnable.inputs)]
            results = self._runnable.run_tensors(order)
        state = [results[place] for place in self._outputs]
        try:
            regular = driver.take_arrays([one for place, one in enumerate(results) if place not in self._outputs])
        except BaseException:
            driver.drop_tensors(state)
            raise
        driver.drop_tensors(self._state)
        self._state = state
        return regular

    def read(self) -> list[Array]:
        return [self._driver.read_tensor(tensor) for tensor in self._state]

    def write(self, arrays: Sequence[Array]) -> None:
        """Replace the state. Raises EngineRunError for a dtype that the engine does not have; it then stays."""
        made: list[c.c_void_p] = []
        try:
            made.extend(map(self._driver.make_tensor, arrays))
        except BaseException:
            self._driver.drop_tensors(made)
            raise
        self._driver.drop_tensors(self._state)
        self._state = made


class _Held:
    """Steps whose state is inside the engine, which neither shows nor takes it; `write` of nothing begins anew."""

    def __init__(self, runnable: TractRunnable) -> None:
        self._runnable, self._state = runnable, runnable.spawn()

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return self._state.run(arrays)

    def read(self) -> list[Array]:
        raise EngineRunError("the engine shows no state that it holds")

    def write(self, arrays: Sequence[Array]) -> None:
        if arrays:
            raise EngineRunError("the engine takes no state, since it holds its own")
        self._state = self._runnable.spawn()


__all__ = ["perform_session"]
