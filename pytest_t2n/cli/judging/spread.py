"""Dispatch units of work to any executor of `concurrent.futures`: each is judged once, even if workers die."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import Protocol

import msgspec

from pytest_t2n.cli.judging.unit import JudgedUnit, Unit
from t2n_core.text import text_of

_LOOK = 0.2
"""Seconds between two checks whether to stop."""
MOST_TRIES = 3
"""How often a unit is sent to a worker, unless its error allows more."""


class Workers(Protocol):
    """Processes that judge units."""

    @property
    def width(self) -> int:
        """Return how many units are judged at a time."""
        ...

    def tries_after(self, error: Exception) -> int:
        """Record an error, and return how often a unit with this error may be tried."""
        ...

    def executor(self) -> Executor:
        """Return the executor; a new one if the last one broke."""
        ...

    def check(self) -> None:
        """Raise T2NError if no worker is left that can judge."""
        ...

    def submit(self, executor: Executor, unit: Unit) -> Future[bytes]:
        """Send a unit to a worker. Raises BrokenExecutor."""
        ...


class Spread:
    """Dispatches work units to an executor.

    A unit whose worker died is retried, alone if the culprit is unknown, and reported as a crash after MOST_TRIES.
    """

    def __init__(
        self,
        workers: Workers,
        units: Iterable[Unit],
        keep: Callable[[Unit, JudgedUnit], None],
        lose: Callable[[Unit, str], None],
    ) -> None:
        """`keep` is called with each result, in order of completion; `lose` with the reason of a missing one."""
        self._workers, self._keep, self._lose = workers, keep, lose
        self._waiting, self._suspects = deque(units), deque[Unit]()
        self._out: dict[Future[bytes], Unit] = {}
        self._tries = Counter[str]()
        self._alone = False
        self._broken = False

    def run(self, stopped: Callable[[], bool]) -> None:
        """Return when each unit has a result or is lost, or soon after `stopped` returns True."""
        executor = self._workers.executor()
        while (self._waiting or self._suspects or self._out) and not stopped():
            if self._broken:
                self._broken, executor = False, self._workers.executor()
            self._fill(executor)
            ended, _ = wait(self._out, timeout=_LOOK, return_when=FIRST_COMPLETED)
            for future in ended:
                self._take(future)
            if self._broken:
                for future in list(self._out):  # they all end now, some successfully
                    self._take(future)

    def _fill(self, executor: Executor) -> None:
        while not self._broken:
            if self._suspects:
                if self._out:
                    return
                queue, self._alone = self._suspects, True
            elif self._waiting and len(self._out) < 2 * self._workers.width and not (self._alone and self._out):
                queue, self._alone = self._waiting, False
            else:
                return
            unit = queue.popleft()
            try:
                self._out[self._workers.submit(executor, unit)] = unit
            except BrokenExecutor:
                queue.appendleft(unit)
                self._broken = True

    def _take(self, future: Future[bytes]) -> None:
        unit = self._out.pop(future)
        try:
            judged = msgspec.msgpack.decode(future.result(), type=JudgedUnit)
        except BrokenExecutor:
            self._broken = True
            if self._alone:
                self._handle_failure(unit, "the process that judged it died", self._suspects, MOST_TRIES)
            else:
                self._suspects.append(unit)
        except Exception as exc:
            self._workers.check()
            why = f"{type(exc).__name__}: {text_of(exc)}"
            self._handle_failure(unit, why, self._waiting, self._workers.tries_after(exc))
        else:
            self._keep(unit, judged)

    def _handle_failure(self, unit: Unit, why: str, queue: deque[Unit], most: int) -> None:
        self._tries[unit.case] += 1
        if self._tries[unit.case] < most:
            queue.append(unit)
        else:
            self._lose(unit, f"tried {self._tries[unit.case]} times: {why}")
