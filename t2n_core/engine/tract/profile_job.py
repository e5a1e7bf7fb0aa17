"""Profiling in the worker: timed plain runs, then the engine's own profile of the same graph."""

from __future__ import annotations

import ctypes as c
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from t2n_core.engine.processes.wire import Frame
from t2n_core.engine.protocol import Array
from t2n_core.engine.tract.driver import TractDriver, TractModel
from t2n_core.engine.tract.operators import optimise_for_profile

_FEWEST = 5
_WARM = 2
"""Warm-up runs, which are not timed."""


class Send(Protocol):
    def __call__(self, header: Mapping[str, Any], arrays: Sequence[Array] = (), /) -> None: ...


def run_profile(driver: TractDriver, job: Frame, send: Send, stage: Callable[[str], Any]) -> None:
    """Send the facts of a profile.

    `profile` is the engine's JSON; `seconds` the time of each plain run; `cpu` the CPU time of a run, and
    `cpu_profiled` of the whole profile; `memory` the growth of peak memory in bytes by the end of the plain runs.
    """
    header, arrays = job.header, job.arrays()
    before = _peak()
    with stage("load"):
        model = _load(driver, header)
    with stage("optimise"):
        runnable = model.into_runnable(optimise=True, declutter=header["declutter"])
    with stage("run"):
        for _ in range(_WARM):
            runnable.run(arrays)
        seconds: list[float] = []
        started, end = time.process_time(), time.perf_counter() + header["profile"]
        while time.perf_counter() < end or len(seconds) < _FEWEST:
            start = time.perf_counter()
            runnable.run(arrays)
            seconds.append(time.perf_counter() - start)
        cpu = (time.process_time() - started) / len(seconds)
        memory = _peak() - before
        profile, graph = optimise_for_profile(driver, _load(driver, header), declutter=header["declutter"])
        with driver.tensors(arrays) as tensors:
            values = (c.c_void_p * len(tensors))(*[tensor.value for tensor in tensors])
            started = time.process_time()
            text = driver.text(
                profile or driver.function("tract_runnable_profile_json"), graph.pointer, values, *driver.no_states
            )
            cpu_profiled = time.process_time() - started
    facts = {"profile": text, "seconds": seconds, "cpu": cpu, "cpu_profiled": cpu_profiled, "memory": memory}
    send({"event": "facts", "facts": facts})


def _peak() -> int:
    """Return the most bytes of memory that the process has had; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else 1024 * largest


def _load(driver: TractDriver, header: Mapping[str, Any]) -> TractModel:
    model = driver.load(Path(header["archive"]))
    if header["symbols"]:
        model.set_symbols(header["symbols"])
    return model
