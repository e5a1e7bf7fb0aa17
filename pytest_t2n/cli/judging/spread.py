"""Units of work spread over any executor of `concurrent.futures`: each is judged once, whatever dies on the way."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import Protocol

import msgspec

from pytest_t2n.cli.judging.unit import JudgedUnit, Unit
from t2n_core.text import text_of

_LOOK = 0.2
"""Seconds between two looks at whether to stop."""
MOST_TRIES = 3
"""Times that a unit is given to a worker, unless its error says more."""


class Workers(Protocol):
    """Processes that judge units."""

    @property
    def width(self) -> int:
        """Return how many units are judged at a time."""
        ...

    def tries_after(self, error: Exception) -> int:
        """Take note of an error, and return how often a unit may be tried that ended so."""
        ...

    def executor(self) -> Executor:
        """Return what runs calls; a new one if the last one broke."""
        ...

    def check(self) -> None:
        """Raise T2NError if there is nobody any more who could judge."""
        ...

    def submit(self, executor: Executor, unit: Unit) -> Future[bytes]:
        """Send a unit to a worker. Raises BrokenExecutor."""
        ...


class Spread:
    """Gives units to workers, and takes what they find.

    A unit whose worker failed is given to another one. Of the units that were out when an executor broke nobody knows
    which one broke it, so each of them is tried again alone. After some tries the unit is given up.
    """

    def __init__(
        self,
        workers: Workers,
        units: Iterable[Unit],
        keep: Callable[[Unit, JudgedUnit], None],
        lose: Callable[[Unit, str], None],
    ) -> None:
        """`keep` is called with each result, in the order in which they come; `lose` with the reason of none."""
        self._workers, self._keep, self._lose = workers, keep, lose
        self._waiting, self._suspects = deque(units), deque[Unit]()
        self._out: dict[Future[bytes], Unit] = {}
        self._tries = Counter[str]()
        self._alone = False
        self._broken = False

    def run(self, stopped: Callable[[], bool]) -> None:
        """Return when each unit is kept or lost, or soon after `stopped` returns True."""
        executor = self._workers.executor()
        while (self._waiting or self._suspects or self._out) and not stopped():
            if self._broken:
                self._broken, executor = False, self._workers.executor()
            self._fill(executor)
            ended, _ = wait(self._out, timeout=_LOOK, return_when=FIRST_COMPLETED)
            for future in ended:
                self._take(future)
            if self._broken:
                for future in list(self._out):  # they all end now, some of them well
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
            found = msgspec.msgpack.decode(future.result(), type=JudgedUnit)
        except BrokenExecutor:
            self._broken = True
            if self._alone:
                self._failed(unit, "the process that judged it died", self._suspects, MOST_TRIES)
            else:
                self._suspects.append(unit)
        except Exception as exc:
            self._workers.check()
            why = f"{type(exc).__name__}: {text_of(exc)}"
            self._failed(unit, why, self._waiting, self._workers.tries_after(exc))
        else:
            self._keep(unit, found)

    def _failed(self, unit: Unit, why: str, queue: deque[Unit], most: int) -> None:
        self._tries[unit.case] += 1
        if self._tries[unit.case] < most:
            queue.append(unit)
        else:
            self._lose(unit, f"tried {self._tries[unit.case]} times: {why}")


__all__ = ["MOST_TRIES", "Spread", "Workers"]
