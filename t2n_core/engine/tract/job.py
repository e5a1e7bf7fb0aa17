"""The work for one job, in the process that the job may kill.

Each stage is announced before it is entered, so that a death is attributed to the right one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from t2n_core.engine.processes.wire import Frame
from t2n_core.engine.protocol import Array
from t2n_core.engine.tract.driver import TractDriver, TractModel, TractRunnable
from t2n_core.engine.tract.kept_calls import KeptCalls, are_same
from t2n_core.engine.tract.operators import list_operators, optimise_for_profile
from t2n_core.engine.tract.profile_job import Send, run_profile
from t2n_core.engine.tract.stream import Stream, write_model
from t2n_core.engine.tract.transforms.job import apply_transforms, run_transforms
from t2n_core.errors import EngineError, EngineRunError


def perform(driver: TractDriver, job: Frame, send: Send) -> None:
    """Send the events of one job: `stage`…, `outputs` per batch, and finally `done`, `error` or `oom`.

    A job that keeps going sends `refused` for a batch that the engine rejects, and runs the next one. Calls in kept
    States come after all batches; those whose outputs differ send `changed`. Then come the further paths.
    """
    times: dict[str, float] = {}
    try:
        _run(driver, job, send, times)
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


def _run(driver: TractDriver, job: Frame, send: Send, times: dict[str, float]) -> None:
    header = job.header

    def stage(name: str) -> AbstractContextManager[None]:
        return enter_stage(name, times, send)

    if header.get("profile"):
        run_profile(driver, job, send, stage)
        return
    if "folder" in header:
        write_model(driver, header, send, stage)
        return
    if "interface" in header:
        run_transforms(driver, header, send, stage)
        return
    arrays = iter(job.arrays())
    batches = [[next(arrays) for _ in range(size)] for size in header["batches"]]
    answers = _run_main_path(driver, header, batches, send, stage)
    for path in header["further"]:
        send({"event": "path", "times": times})
        _run_further_path(driver, header, path, batches, answers, send, stage)


def _run_main_path(
    driver: TractDriver,
    header: Mapping[str, Any],
    batches: Sequence[list[Array]],
    send: Send,
    stage: Callable[[str], AbstractContextManager[None]],
) -> list[list[Array]]:
    """Load and optimise the archive, run all batches and calls, and return the outputs by batch."""
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
            profile, graph = optimise_for_profile(driver, model, declutter=header["declutter"])
    if header["operators"]:  # between two parts of the stage, whose time it does not change
        list_operators(driver, profile, graph, lambda facts: send({"event": "facts", "facts": facts}))
    with stage("optimise"):
        optimise = header["stage"] == "optimise" and not header["operators"]
        if isinstance(graph, TractRunnable):
            runnable = graph
        else:
            runnable = graph.into_runnable(optimise=optimise, declutter=header["declutter"])
    if header["one_state"]:
        with stage("run"):
            steps = runnable.run_steps(batches)
            for outputs in steps:
                send({"event": "outputs"}, outputs)
        return steps
    if header["pulse"]:
        with stage("run"):
            return _run_batches(batches, header, lambda _, batch: stream.run(runnable, batch), send)
    calls = KeptCalls(runnable, [(state, batch) for state, batch in header["calls"]])
    with stage("run"):
        answers = _run_batches(batches, header, calls.run, send)
    calls.run_again(send)
    return answers


def _run_batches(
    batches: Sequence[list[Array]],
    header: Mapping[str, Any],
    run: Callable[[int, list[Array]], list[Array]],
    send: Send,
) -> list[list[Array]]:
    """Run the batches in order and send their outputs; return these, empty for a batch that the engine refused."""
    answers: list[list[Array]] = []
    fed = dict(header["fed"])
    for number, batch in enumerate(batches):
        try:
            _feed(batch, answers[-1] if answers else (), fed.get(number, ()))
            outputs = run(number, batch)
        except EngineRunError as error:
            if not header["keep_going"]:
                raise
            send({"event": "refused", "message": str(error)})
            answers.append([])
        else:
            send({"event": "outputs"}, outputs)
            answers.append(outputs)
    return answers


def _run_further_path(
    driver: TractDriver,
    header: Mapping[str, Any],
    path: Mapping[str, Any],
    batches: Sequence[Sequence[Array]],
    answers: Sequence[Sequence[Array]],
    send: Send,
    stage: Callable[[str], AbstractContextManager[None]],
) -> None:
    """Load the archive again, run some batches, and send `outputs`, `refused`, or `same` if they equal the main path's.

    `path` has the fields of `PathRun`; `answers` are the outputs of the main path by batch. Raises EngineError.
    """
    with stage("load"):
        model = driver.load(Path(header["archive"]))
    with stage("optimise"):
        if path["symbols"]:
            model.set_symbols(path["symbols"])
        runnable = model.into_runnable(optimise=True, declutter=path["declutter"])
    with stage("run"):
        for number in path["batches"]:
            try:
                outputs = runnable.run(batches[number])
            except EngineRunError as error:
                if not header["keep_going"]:
                    raise
                send({"event": "refused", "message": str(error)})
                continue
            if answers[number] and are_same(outputs, answers[number]):
                send({"event": "same", "batch": number})
            else:
                send({"event": "outputs"}, outputs)


def _feed(batch: list[Array], outputs: Sequence[Array], pairs: Sequence[tuple[int, int]]) -> None:
    """Copy outputs of the previous batch into the inputs of this one. Raises EngineRunError if there are none."""
    for input_index, output in pairs:
        if output >= len(outputs) or input_index >= len(batch):
            raise EngineRunError(
                f"input {input_index} is fed from output {output} of the previous batch, which has none"
            )
        batch[input_index] = outputs[output]


__all__ = ["Send", "enter_stage", "perform"]
