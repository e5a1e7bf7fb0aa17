"""A process that answers jobs one after another, each within a time and a memory limit: both sides of it.

The process runs a module that calls `serve` with a function that answers one job. Frames of `wire.py` are read from
descriptor 0 and written to the original descriptor 1.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from t2n_core import errors
from t2n_core.engine.processes.channel import claim_channel
from t2n_core.engine.processes.death import explain_death
from t2n_core.engine.processes.memory import limit_process, memory_limit
from t2n_core.engine.processes.wire import Frame, read_frame, write_frame
from t2n_core.engine.processes.worker_process import WorkerDied, WorkerProcess
from t2n_core.engine.protocol import Array
from t2n_core.errors import BudgetError, InputError, MeaningError, T2NError

Answers: TypeAlias = Iterator[tuple[dict[str, Any], list[Array]]]
"""The header and the arrays of each event of a job."""
_NAMED: Final = (
    "BudgetError",
    "MeaningError",
    "MalformedArchiveError",
    "UndefinedOperatorError",
    "DrawError",
    "InputError",
    "SpecError",
)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of a job, in types that JSON has."""

    kind: str
    message: str
    op: str = ""
    hint: str = ""
    statement: str = ""
    is_outside_of_domain: bool = False

    @classmethod
    def of(cls, wrong: Exception) -> Failure:
        """Return the failure of an exception."""
        if isinstance(wrong, MemoryError | RecursionError):
            limit = "memory" if isinstance(wrong, MemoryError) else "nesting"
            return cls("BudgetError", f"it takes more {limit} than one job may have")
        if not isinstance(wrong, T2NError):  # an error of a definition, which an archive of any kind may reach
            return cls("MeaningError", f"{type(wrong).__name__}: {wrong}")
        kind = next((base.__name__ for base in type(wrong).__mro__ if base.__name__ in _NAMED), "MeaningError")
        details = (wrong.statement, wrong.is_outside_of_domain) if isinstance(wrong, MeaningError) else ()
        return cls(kind, wrong.message, wrong.op or "", wrong.hint or "", *details)

    def error(self) -> T2NError:
        """Return the exception, one of `InputError` and `MeaningError` with their subclasses."""
        kind = getattr(errors, self.kind)
        details = {"statement": self.statement, "is_outside_of_domain": self.is_outside_of_domain}
        if not issubclass(kind, MeaningError):
            kind, details = kind if issubclass(kind, InputError) else InputError, {}
        error: T2NError = kind(self.message, op=self.op or None, **details)
        error.hint = self.hint or None
        return error


def serve(answers: Callable[[Frame], Answers]) -> int:
    """Answer the jobs on the standard input until it ends, each with its events and an end; return the exit status."""
    requests, channel = claim_channel()
    write_frame(channel, {"event": "ready"})
    with contextlib.suppress(BrokenPipeError):
        while (job := read_frame(requests)) is not None:
            end: dict[str, Any] = {"event": "end"}
            limit_process(job.header["memory"])
            try:
                for header, arrays in answers(job):
                    write_frame(channel, header, arrays)
            except BrokenPipeError:
                raise
            except Exception as wrong:
                end["failure"] = asdict(Failure.of(wrong))
            write_frame(channel, end)
    return 0


class JobProcess:
    """One process at a time, started by the first job and again after a job that ended it."""

    def __init__(self, module: str, python: Path | None = None) -> None:
        """Take the module to run, and the interpreter if it is another environment's."""
        self._module, self._python = module, python
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        _ALL.append(self)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.abandon)

    def work(
        self,
        job: Mapping[str, Any],
        arrays: Sequence[Array],
        take: Callable[[Frame], None],
        *,
        what: str,
        seconds: float,
        grace: float = 0.0,
    ) -> None:
        """Do a job within `seconds`, and pass its events to `take`; `what` it does is the subject of messages.

        `grace` are seconds beyond these, after which the process is ended. Raises the job's error, BudgetError if it
        takes too long, and MeaningError if the process ends without an answer.
        """
        header = {**job, "memory": memory_limit()}
        with self._lock:
            try:
                worker = self._ready_worker()
                end = worker.converse(header, list(map(np.asarray, arrays)), timeout=seconds + grace, on_event=take)
            except WorkerDied as died:
                self._worker = None
                death = explain_death(died.exit_code, died.stderr, killed_by_us=died.killed_by_us)
                if death.status == "timeout":
                    raise BudgetError(f"{what} took longer than {seconds:.0f} seconds") from None
                raise MeaningError(f"{what} failed: {death.message}") from None
            except BaseException:
                self._worker = None
                raise
        if (failure := end.header.get("failure")) is not None:
            raise Failure(**failure).error()

    def close(self) -> None:
        """End the process; the next job starts a new one."""
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

    def _ready_worker(self) -> WorkerProcess:
        if self._worker is not None and not self._worker.usable:
            self._worker.abandon()
            self._worker = None
        if self._worker is None:
            self._worker = WorkerProcess(self._module, python=self._python)
            self._worker.wait_ready()
        return self._worker


def close_jobs() -> None:
    """End all job processes; the next job of each starts a new one."""
    for process in _ALL:
        process.close()


_ALL: Final[list[JobProcess]] = []
atexit.register(close_jobs)
