"""Timing in turns (AB BA AB …), so that what else the machine does hits all contestants alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def in_turns(contestants: Iterable[T], rounds: int) -> Iterator[T]:
    """Yield all contestants in each round, in the opposite order in every second one."""
    order = list(contestants)
    for turn in range(rounds):
        yield from order[:: 1 if turn % 2 == 0 else -1]


def ratio(times: Sequence[float], others: Sequence[float]) -> float:
    """Return the median over turns of `times` as multiples of the others': neighbours had the same machine."""
    return statistics.median(seconds / other for seconds, other in zip(times, others, strict=True))


class Stopwatch:
    """Seconds since it was made: wall time, and CPU time of this process."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    @property
    def wall(self) -> float:
        return time.perf_counter() - self._wall

    @property
    def cpu(self) -> float:
        return time.process_time() - self._cpu
