"""Shards: parts of a suite, each for a separate machine."""

from __future__ import annotations

import hashlib
import heapq
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` of `count`, counted from 1."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard that `2/4` names. Raises ValueError."""
        index, _, count = text.partition("/")
        shard = cls(int(index), int(count))
        if not 1 <= shard.index <= shard.count:
            raise ValueError(text)
        return shard

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def partition(costs: Mapping[str, float], count: int, before: Sequence[float] = ()) -> dict[str, int]:
    """Return the index of each unit's shard, so that the costs of all shards are about equal.

    Units are assigned by decreasing cost to the shard with the least load; of several, to the one with the least load
    `before`. The order of `costs` has no influence, so that all machines find the same.
    """
    loads = [(0.0, before[index] if before else 0.0, index + 1) for index in range(count)]
    heapq.heapify(loads)
    shards = {}
    for name, cost in sorted(costs.items(), key=lambda pair: (-pair[1], pair[0])):
        load, earlier, index = loads[0]
        heapq.heapreplace(loads, (load + cost, earlier, index))
        shards[name] = index
    return shards


@dataclass(frozen=True, slots=True)
class CutCases:
    """The shard of each case."""

    shards: dict[str, int]
    loads: list[float]
    """The cost of each shard."""
    digest: str
    """Equal for shards of one partition."""


def cut_cases(sizes: Mapping[str, int], durations: Mapping[str, float], count: int) -> CutCases:
    """Return the shard of each case; `sizes` has the number of cells of each.

    `durations` are seconds by case, and a case without one counts as the median; if there are none, a case counts as
    its number of cells.
    """
    usual = statistics.median(durations.values()) if durations else 0.0
    costs = {case: durations.get(case, usual) if durations else size for case, size in sizes.items()}
    shards = partition(costs, count)
    loads = [0.0] * count
    for case, index in shards.items():
        loads[index - 1] += costs[case]
    digest = hashlib.sha256("".join(f"{index}\t{case}\n" for case, index in sorted(shards.items())).encode())
    return CutCases(shards, loads, digest.hexdigest())
