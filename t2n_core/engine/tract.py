"""A tract library from a wheel, as an engine."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from packaging.version import Version

from t2n_core.engine.answer import Answer
from t2n_core.engine.process import WorkerDied, WorkerProcess
from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.engine.resolved import ResolvedEngine
from t2n_core.engine.wire import plain_array
from t2n_core.errors import InputError

GraphStage = Literal["raw", "declutter", "optimise"]

MEMORY_LIMIT = 8 << 30
"""Bytes that one job may map on top of its worker, unless told otherwise."""
_OPTIMISED_ONLY = Version("0.23")
_WORKER = "t2n_core.engine.worker"
_GRACE = 10.0
"""Seconds that a forking worker gets beyond the job's own time to report that it killed the job."""


class TractEngine:
    """One version of tract in a worker of its own; implements `Engine`.

    Jobs of several threads run one after the other. The worker starts with the first job, and again after a death.
    """

    name = "tract"

    def __init__(self, resolved: ResolvedEngine, *, fork: bool = hasattr(os, "fork")) -> None:
        """With `fork` off the jobs run in the worker itself, which is replaced when one kills it."""
        self.resolved = resolved
        self._fork = fork
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None

    @property
    def version(self) -> str:
        return self.resolved.version

    @property
    def runs_stages(self) -> bool:
        """Whether a graph can run before the optimiser has changed it."""
        return Version(self.version) < _OPTIMISED_ONLY

    def __repr__(self) -> str:
        return f"TractEngine({self.version})"

    def run(
        self,
        archive: Path,
        batches: Sequence[Sequence[Array]],
        *,
        timeout: float = 60.0,
        memory_limit: int | None = None,
        symbols: Mapping[str, int] | None = None,
        stage: GraphStage = "optimise",
        pulse: tuple[str, int] | None = None,
    ) -> EngineReply:
        """Load `archive` (directory, .tar or .tgz) once and run each batch, inputs in graph order.

        `timeout` is in seconds for the whole job, `memory_limit` in bytes beyond the worker's own size (default
        MEMORY_LIMIT; not enforced where jobs are not forked, nor on macOS). `symbols` gives symbolic sizes a value
        before optimising. The stages `raw` and `declutter` run the graph before later steps, up to tract 0.22; newer
        versions answer with an error. No batches: only load and optimise. `pulse` gives the symbol of the time axis and
        how many steps the graph then takes at a time; batches are whole sequences of such pulses, and outputs what is
        known of them at the end.

        Whatever the engine does is in the reply. Raises InputError for arrays that cannot be sent to any engine.
        """
        try:
            arrays = [plain_array(array) for batch in batches for array in batch]
        except TypeError as cause:
            raise InputError(str(cause)) from cause
        header = {
            "archive": str(archive.absolute()),
            "batches": [len(batch) for batch in batches],
            "timeout": timeout,
            "memory_limit": MEMORY_LIMIT if memory_limit is None else memory_limit,
            "symbols": dict(symbols or {}),
            "stage": stage,
            "pulse": None if pulse is None else {"symbol": pulse[0], "size": pulse[1]},
        }
        with self._lock:
            answer = self._ask(header, arrays, timeout)
            if answer.lost:
                # the worker was ended from outside between two jobs, which says nothing about this job
                answer = self._ask(header, arrays, timeout)
        return answer.reply()

    def close(self) -> None:
        with self._lock:
            if self._worker:
                self._worker.close()
                self._worker = None

    def abandon(self) -> None:
        """In a forked process: forget the worker, which belongs to the process that started it."""
        self._lock = threading.Lock()
        if self._worker:
            self._worker.abandon()
            self._worker = None

    def _ask(self, header: Mapping[str, Any], arrays: Sequence[Array], timeout: float) -> Answer:
        answer = Answer()
        try:
            worker = self._ready_worker(answer)
            if worker:
                allowed = timeout + _GRACE if self._fork else timeout
                answer.take_end(worker.converse(header, arrays, timeout=allowed, on_event=answer.take))
        except WorkerDied as death:
            self._worker = None
            answer.take_death(death.exit_code, death.stderr, killed_by_us=death.killed_by_us)
            answer.lost = not answer.started and not death.killed_by_us
        except BaseException:
            self._worker = None
            raise
        return answer

    def _ready_worker(self, answer: Answer) -> WorkerProcess | None:
        """None, with the reason in `answer`, when the library cannot be loaded."""
        if self._worker and not self._worker.usable:
            self._worker.abandon()
            self._worker = None
        if self._worker is None:
            self._worker = WorkerProcess(_WORKER, str(self.resolved.library), *([] if self._fork else ["--inline"]))
            first = self._worker.wait_ready()
            if first.header["event"] == "failed":
                self._worker.close()
                self._worker = None
                answer.take(first)
                return None
        return self._worker
