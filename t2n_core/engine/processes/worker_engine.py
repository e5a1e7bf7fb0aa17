"""Base class of engines with a worker process, which starts with the first job and again after a crash."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t2n_core.engine.processes.answer import Answer
from t2n_core.engine.processes.wire import plain_array
from t2n_core.engine.processes.worker_process import WorkerDied, WorkerProcess
from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.errors import InputError

_LOG = logging.getLogger(__name__)


class WorkerEngine:
    """One worker process at a time. Jobs of several threads run one after the other."""

    def __init__(
        self, module: str, *arguments: str, grace: float = 0.0, environment: Mapping[str, str] | None = None
    ) -> None:
        """Take the worker's command, `python -m module arguments`, and its own variables.

        A worker has `grace` seconds beyond a job's time limit.
        """
        self._command = (module, *arguments)
        self._environment = environment
        self._grace = grace
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None

    def why_unusable(self) -> str:
        """Return why the worker cannot work on this machine, '' if it can; it is started if necessary."""
        answer = Answer()
        with self._lock:
            try:
                usable = self._ready_worker(answer) is not None
            except WorkerDied as death:
                self._worker = None
                answer.take_death(death.exit_code, death.stderr, killed_by_us=death.killed_by_us)
                usable = False
        return "" if usable else answer.reply().message

    def close(self) -> None:
        with self._lock:
            if self._worker:
                self._worker.close()
                self._worker = None

    def abandon(self) -> None:
        """Forget the worker in a forked process; it belongs to the process that started it."""
        self._lock = threading.Lock()
        if self._worker:
            self._worker.abandon()
            self._worker = None

    def _work(
        self, archive: Path, batches: Sequence[Sequence[Array]], options: Mapping[str, Any], timeout: float
    ) -> EngineReply:
        """Return the reply to one job; failures are replies too. Raises InputError for arrays that cannot be sent."""
        try:
            arrays = [plain_array(array) for batch in batches for array in batch]
        except TypeError as cause:
            raise InputError(str(cause)) from cause
        header = {"archive": str(archive.absolute()), "batches": [len(batch) for batch in batches], **options}
        with self._lock:
            answer = self._ask(header, arrays, timeout)
            if answer.lost:
                # the worker was killed from outside between two jobs, which this job did not cause
                _LOG.debug("the job is given to a new worker, since the last one was gone")
                answer = self._ask(header, arrays, timeout)
        return answer.reply()

    def _ask(self, header: Mapping[str, Any], arrays: Sequence[Array], timeout: float) -> Answer:
        answer = Answer()
        try:
            worker = self._ready_worker(answer)
            if worker:
                allowed = timeout + self._grace
                answer.take_end(worker.converse(header, arrays, timeout=allowed, on_event=answer.take))
        except WorkerDied as death:
            self._worker = None
            answer.take_death(death.exit_code, death.stderr, killed_by_us=death.killed_by_us)
            _LOG.debug("the worker %s ended with exit code %s", self._command[0], death.exit_code)
            answer.lost = not answer.started and not death.killed_by_us
        except BaseException:
            self._worker = None
            raise
        return answer

    def _new_worker(self) -> WorkerProcess:
        return WorkerProcess(*self._command, environment=self._environment)

    def _ready_worker(self, answer: Answer) -> WorkerProcess | None:
        """Return the worker, started if necessary; None, with the reason in `answer`, if it cannot work."""
        if self._worker and not self._worker.usable:
            self._worker.abandon()
            self._worker = None
        if self._worker is None:
            self._worker = self._new_worker()
            _LOG.debug("the worker %s starts", self._command[0])
            first = self._worker.wait_ready()
            if first.header["event"] == "failed":
                self._worker.close()
                self._worker = None
                answer.take(first)
                return None
        return self._worker
