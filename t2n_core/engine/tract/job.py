"""The work for one job, in the process that the job may kill.

Each stage is announced before it is entered, so that a death is attributed to the right one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from t2n_core.engine.processes.wire import Frame
from t2n_core.engine.protocol import Array
from t2n_core.engine.tract.driver import TractDriver, TractModel, TractRunnable
from t2n_core.engine.tract.kept_calls import KeptCalls
from t2n_core.engine.tract.operators import list_operators, optimise_for_profile
from t2n_core.engine.tract.profile_job import Send, run_profile
from t2n_core.engine.tract.stream import Stream, write_stream
from t2n_core.engine.tract.transforms.job import apply_transforms, run_transforms
from t2n_core.errors import EngineError, EngineRunError


def perform(driver: TractDriver, job: Frame, send: Send) -> None:
    """Send the events of one job: `stage`…, `outputs` per batch, and finally `done`, `error` or `oom`.

    A job that keeps going sends `refused` for a batch that the engine rejects, and runs the next one. Calls in kept
    States come after all batches; those whose outputs differ send `changed`.
    """
    times: dict[str, float] = {}
    try:
        _run(driver, job, send, lambda name: enter_stage(name, times, send))
    except EngineError as error:
        send({"event": "error", "message": str(error), "times": times})
    except MemoryError:
        send({"event": "oom", "message": "an array of inputs or outputs does not fit", "times": times})
    else:
        send({"event": "done", "times": times})


@contextmanager
def enter_stage(stage: str, times: dict[str, float], send: Send) -> Iterator[None]:
    """Announce a stage, and add the seconds that the block takes to its time."""
    send({"event": "stage", "stage": stage})
    start = time.perf_counter()
    try:
        yield
    finally:
        times[stage] = times.get(stage, 0.0) + time.perf_counter() - start


def _run(driver: TractDriver, job: Frame, send: Send, stage: Callable[[str], Any]) -> None:
    header = job.header
    if header.get("profile"):
        run_profile(driver, job, send, stage)
        return
    if "folder" in header:
        write_stream(driver, header, send, stage)
        return
    if "interface" in header:
        run_transforms(driver, header, send, stage)
        return
    with stage("load"):
        model = driver.load(Path(header["archive"]))
        send({"event": "facts", "facts": {**model.facts(), "registries": driver.registries}})
    with stage("optimise"):
        if header["transforms"]:
            model = apply_transforms(driver, model, header)
        if header["symbols"]:
            model.set_symbols(header["symbols"])
        if header["stage"] == "declutter" or header["pulse"]:
            model.declutter()
        if header["pulse"]:
            stream = Stream.of(model, header["pulse"])
        graph: TractModel | TractRunnable = model
        if header["operators"]:
            profile, graph = optimise_for_profile(driver, model)
    if header["operators"]:  # between two parts of the stage, whose time it does not change
        list_operators(driver, profile, graph, lambda facts: send({"event": "facts", "facts": facts}))
    with stage("optimise"):
        optimise = header["stage"] == "optimise" and not header["operators"]
        runnable = graph if isinstance(graph, TractRunnable) else graph.into_runnable(optimise=optimise)
    arrays = iter(job.arrays())
    outputs: list[Array] = []
    if header["one_state"]:
        with stage("run"):
            steps = [[next(arrays) for _ in range(size)] for size in header["batches"]]
            for outputs in runnable.run_steps(steps):
                send({"event": "outputs"}, outputs)
        return
    calls = KeptCalls(runnable, [] if header["pulse"] else [(state, batch) for state, batch in header["calls"]])
    fed = dict(header["fed"])
    with stage("run"):
        for number, size in enumerate(header["batches"]):
            batch = [next(arrays) for _ in range(size)]
            try:
                _feed(batch, outputs, fed.get(number, ()))
                outputs = stream.run(runnable, batch) if header["pulse"] else calls.run(number, batch)
            except EngineRunError as error:
                if not header["keep_going"]:
                    raise
                outputs = []
                send({"event": "refused", "message": str(error)})
            else:
                send({"event": "outputs"}, outputs)
    calls.run_again(send)


def _feed(batch: list[Array], outputs: Sequence[Array], pairs: Sequence[tuple[int, int]]) -> None:
    """Copy outputs of the previous batch into the inputs of this one. Raises EngineRunError if there are none."""
    for place, output in pairs:
        if output >= len(outputs) or place >= len(batch):
            raise EngineRunError(f"input {place} is fed from output {output} of the previous batch, which has none")
        batch[place] = outputs[output]


__all__ = ["Send", "enter_stage", "perform"]
