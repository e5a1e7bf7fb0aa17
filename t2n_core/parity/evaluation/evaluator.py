"""The process that evaluates archives by the definitions of their operators, and what it answers.

A small archive can ask for more memory and time than any machine has.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from t2n_core.dialect.tensors import Tensor
from t2n_core.engine.processes.death import explain_death
from t2n_core.engine.processes.memory import memory_limit
from t2n_core.engine.processes.wire import Frame
from t2n_core.engine.processes.worker_process import WorkerDied, WorkerProcess
from t2n_core.errors import BudgetError, MeaningError
from t2n_core.parity.evaluation import child
from t2n_core.parity.evaluation.noise import Noise
from t2n_core.parity.samples import Array, Sample

SECONDS: Final = 60.0
"""Most seconds of all samples of an archive."""
_GRACE: Final = 5.0
"""Seconds beyond these for an operation that has begun, which is then ended without its name."""


class Evaluator:
    """One process at a time, which starts with the first job and again after one that ended it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None

    @staticmethod
    def shared() -> Evaluator:
        """Return the evaluator of this process; a forked process has its own."""
        return _shared

    def evaluate(
        self,
        archive: Path,
        inputs: Sequence[Array],
        *,
        results: Sequence[str] | None = None,
        standard: bool = False,
        seconds: float = SECONDS,
        noise: Noise | None = None,
    ) -> dict[str, Tensor]:
        """Return what `dialect.evaluate` does, of `results` those that are tensors. Raises its errors."""
        evaluated: list[dict[str, Tensor]] = []
        options = {"results": None if results is None else list(results)}
        job = _job(archive, [inputs], options, seconds=seconds, standard=standard, noise=noise)
        self._work(job, [inputs], lambda frame: evaluated.append(_results(frame)))
        return evaluated[0]

    def samples(
        self,
        archive: Path,
        given: Sequence[tuple[Array, ...]] = (),
        *,
        standard: bool = False,
        round_to_storage: bool = False,
        seconds: float = SECONDS,
    ) -> list[Sample]:
        """Return a sample for each set of inputs, or for drawn ones; the options are those of `dialect.evaluate`.

        Raises BudgetError, with the statement where it is known, for an archive that takes more than `seconds` or the
        memory of a job, and the errors of `dialect.draw_inputs` and `dialect.evaluate`.
        """
        samples: list[Sample] = []

        def take(frame: Frame) -> None:
            inputs = given[len(samples)] if given else tuple(frame.arrays()[: frame.header["inputs"]])
            outputs = tuple(tensor.raw() for tensor in _results(frame).values())
            samples.append(Sample(inputs, outputs, frame.header["sizes"]))

        options = {"round_to_storage": round_to_storage}
        self._work(_job(archive, given, options, seconds=seconds, standard=standard), given, take)
        return samples

    def close(self) -> None:
        """End the process; the next job starts another one."""
        with self._lock:
            if self._worker is not None:
                self._worker.close()
                self._worker = None

    def abandon(self) -> None:
        """Forget the process in a forked one; it belongs to the process that started it."""
        self._lock = threading.Lock()
        if self._worker is not None:
            self._worker.abandon()
            self._worker = None

    def _work(self, job: dict[str, Any], given: Sequence[Sequence[Array]], take: Callable[[Frame], None]) -> None:
        arrays = [np.asarray(array) for inputs in given for array in inputs]
        seconds = job["seconds"]
        with self._lock:
            try:
                end = self._ready_worker().converse(job, arrays, timeout=seconds + _GRACE, on_event=take)
            except WorkerDied as died:
                self._worker = None
                death = explain_death(died.exit_code, died.stderr, killed_by_us=died.killed_by_us)
                if death.status == "timeout":
                    raise BudgetError(f"the evaluation took longer than {seconds:.0f} seconds") from None
                raise MeaningError(
                    f"the outputs by the definitions of the operators cannot be computed: {death.message}"
                ) from None
            except BaseException:
                self._worker = None
                raise
        if (failure := end.header.get("failure")) is not None:
            raise child.Failure(**failure).error()

    def _ready_worker(self) -> WorkerProcess:
        if self._worker is not None and not self._worker.usable:
            self._worker.abandon()
            self._worker = None
        if self._worker is None:
            self._worker = WorkerProcess(child.__name__)
            self._worker.wait_ready()
        return self._worker


def _job(
    archive: Path,
    given: Sequence[Sequence[Array]],
    options: Mapping[str, Any],
    *,
    seconds: float,
    standard: bool,
    noise: Noise | None = None,
) -> dict[str, Any]:
    """Return the header of a job, whose `options` are passed to `dialect.evaluate`."""
    return {
        "archive": str(archive.absolute()),
        "counts": [len(inputs) for inputs in given],
        "standard": standard,
        "options": options,
        "seconds": seconds,
        "memory": memory_limit(),
        "noise": noise,
    }


def _results(frame: Frame) -> dict[str, Tensor]:
    arrays = frame.arrays()[frame.header["inputs"] :]
    types = frame.header["results"]
    return {name: Tensor(array, np.dtype(types[name])) for name, array in zip(types, arrays, strict=True)}


_shared: Final = Evaluator()
atexit.register(_shared.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.abandon)
