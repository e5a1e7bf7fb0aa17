"""Time archives in a tract library, in a process that holds nothing else: `python -m … < job.json > answers.json`.

Archives of one net are loaded once, checked on the same input against the same expected outputs, and then run in turns
(AB BA AB …), so that other load on the machine hits all of them alike; each turn's figure is its fastest run, and
ratios are taken between neighbours. Only the engine's run is timed; tensors are made before. CPU time covers all
threads: some operators start their own.
"""

from __future__ import annotations

import ctypes as c
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conformance.lab.machine import memory_of_process, pin_to_one_core
from conformance.lab.processes import run_module
from conformance.lab.timing import Stopwatch, in_turns
from t2n_core.engine import ResolvedEngine
from t2n_core.engine.tract.driver import TractDriver, TractRunnable
from t2n_core.errors import EngineError, EngineOptimiseError, EngineRunError

TURN = 0.02
"""Seconds that one archive runs before it is the next one's turn."""
LEAST_RUNS = 2
"""In one turn."""
LOADS, LOAD_SECONDS = 5, 0.5
"""An archive is loaded so often, as long as that takes no longer; the fastest load counts."""
CLOSE = (1e-4, 5e-4)
"""Absolute and relative error, as tract's level `approximate`."""


class TimedArchive:
    """A loaded archive with its inputs inside the engine."""

    def __init__(self, driver: TractDriver, archive: Path, inputs: Sequence[np.ndarray[Any, Any]]) -> None:
        self.load_seconds = float("inf")
        total_watch = Stopwatch()
        for _ in range(LOADS):
            runnable: TractRunnable | None = None  # ends the one before, which would count for the peak of memory
            watch = Stopwatch()
            runnable = driver.load(archive).into_runnable(optimise=True)
            self.load_seconds = min(self.load_seconds, watch.cpu)
            if total_watch.cpu > LOAD_SECONDS:
                break
        assert runnable is not None
        self.runnable = runnable
        self.operators = operators(driver, archive)
        self.driver = driver
        watch = Stopwatch()
        self.outputs = self.runnable.run(inputs)
        self.first_seconds = watch.cpu
        tensors = [driver.make_tensor(array) for array in inputs]
        self.given = (c.c_void_p * len(tensors))(*[tensor.value for tensor in tensors])
        self.got = (c.c_void_p * self.runnable.outputs)()
        self.call = driver.function("tract_runnable_run")
        self.cpu: list[float] = []
        self.turns: list[float] = []
        self.wall: list[float] = []

    def run_for(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        first = len(self.cpu)
        while len(self.cpu) < first + LEAST_RUNS or time.perf_counter() < end:
            watch = Stopwatch()
            failed = self.call(self.runnable.pointer, self.given, self.got)
            self.cpu.append(watch.cpu)
            self.wall.append(watch.wall)
            self.driver.check(failed, EngineRunError)
            self.driver.drop_tensors([c.c_void_p(value) for value in self.got])
        self.turns.append(min(self.cpu[first:]))

    def figures(self) -> dict[str, Any]:
        self.cpu.sort()
        return {
            "cpu_ms": 1e3 * float(np.median(self.cpu)),
            "wall_ms": 1e3 * float(np.median(self.wall)),
            "least_cpu_ms": 1e3 * self.cpu[0],
            "turns_ms": [round(1e3 * seconds, 6) for seconds in self.turns],
            "runs": len(self.cpu),
            "load_ms": 1e3 * self.load_seconds,
            "first_ms": 1e3 * self.first_seconds,
            "operators": self.operators,
        }


def largest_excess(got: Sequence[np.ndarray[Any, Any]], expected: Sequence[np.ndarray[Any, Any]]) -> float:
    """Return the largest error as a share of the tolerance: at most 1 is right."""
    if [a.shape for a in got] != [a.shape for a in expected]:
        return float("inf")
    absolute, relative = CLOSE
    excess = 0.0
    for a, b in zip(got, expected, strict=True):
        error = np.abs(a.astype(np.float64) - b) / (absolute + relative * np.abs(b))
        excess = max(excess, float(np.nan_to_num(error, nan=np.inf).max(initial=0.0)))
    return excess


def largest_error(got: Sequence[np.ndarray[Any, Any]], expected: Sequence[np.ndarray[Any, Any]]) -> float:
    """Return the largest absolute difference between outputs of equal shapes."""
    pairs = zip(got, expected, strict=True)
    return max((float(np.abs(a.astype(np.float64) - b).max(initial=0.0)) for a, b in pairs), default=0.0)


def time_case(driver: TractDriver, case: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Return figures or an error for each archive of one net; without expected outputs none is compared."""
    arrays = np.load(case["arrays"])
    inputs = [arrays[key] for key in arrays.files if key.startswith("input")]
    expected = [arrays[key] for key in arrays.files if key.startswith("output")]
    figures: dict[str, Any] = {}
    ready: dict[str, TimedArchive] = {}
    for name, archive in case["archives"].items():
        try:
            timed = TimedArchive(driver, Path(archive), inputs)
        except EngineError as cause:
            figures[name] = {"error": str(cause)[-400:]}
            continue
        excess = largest_excess(timed.outputs, expected) if expected else 0.0
        if excess > 1:
            figures[name] = {"error": f"wrong values: {excess:.3g} times the tolerance"}
        else:
            ready[name] = timed
    for timed in in_turns(ready.values(), rounds):
        timed.run_for(TURN)
    for name, timed in ready.items():
        figures[name] = timed.figures() | ({"max_abs": largest_error(timed.outputs, expected)} if expected else {})
    return figures


def time_in_process(
    engine: ResolvedEngine, cases: Sequence[dict[str, Any]], rounds: int, timeout: float | None = None
) -> list[dict[str, Any]]:
    """Return a separate process's answer to each case until it dies; one more answer then says how.

    A case is `{"name": …, "arrays": file of input0, … and output0, …, "archives": {name: path}}`. An answer has the
    process's peak memory so far. Raises subprocess.TimeoutExpired after `timeout` seconds.
    """
    job = {"library": str(engine.library), "cases": cases, "rounds": rounds}
    child = run_module(__name__, job=job, timeout=timeout)
    answers = [json.loads(line) for line in child.stdout.splitlines()]
    if child.returncode:
        answers.append({"name": cases[len(answers)]["name"], "archives": {}, "died": child.stderr[-300:]})
    return answers


def operators(driver: TractDriver, archive: Path) -> dict[str, int]:
    """Return how often each operator is in the optimised graph, without inputs and constants. Raises EngineError."""
    model = driver.load(archive)
    if profile := driver.find("tract_model_profile_json"):  # up to 0.22 a model is profiled, then a runnable
        driver.check(driver.function("tract_model_optimize")(model.pointer), EngineOptimiseError)
        states = (None, c.c_size_t(0)) if driver.find("tract_state_get_states") else ()
        text = driver.text(profile, model.pointer, None, *states)
    else:
        runnable = model.into_runnable(optimise=True)
        text = driver.text(driver.function("tract_runnable_profile_json"), runnable.pointer, None)
    return count_operators(json.loads(text))


def count_operators(profile: dict[str, Any]) -> dict[str, int]:
    """Return how often each operator is in a profile of the engine, under its name without parameters."""
    names = [re.split(r"[ <(\[]", node["op_name"])[0] for node in profile["nodes"]]
    return dict(Counter(name for name in names if name not in ("Source", "Const")).most_common())


def main() -> None:
    job = json.load(sys.stdin)
    pin_to_one_core()
    driver = TractDriver(Path(job["library"]))
    for case in job["cases"]:
        answer = {"name": case["name"], "archives": time_case(driver, case, job["rounds"])}
        answer["peak_bytes"] = memory_of_process("VmHWM")
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
