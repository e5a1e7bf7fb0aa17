"""Shards: parts of a suite, each for a machine of its own."""

from __future__ import annotations

import heapq
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


def cut(costs: Mapping[str, float], count: int, before: Sequence[float] = ()) -> dict[str, int]:
    """Return the index of each unit's shard, so that the costs of all shards are about the same.

    The dearest unit comes first, and each goes to the shard that has least; where several have, to the one that had
    least `before`. The order of `costs` does not count, so that each machine finds the same.
    """
    loads = [(0.0, before[index] if before else 0.0, index + 1) for index in range(count)]
    heapq.heapify(loads)
    found = {}
    for name, cost in sorted(costs.items(), key=lambda pair: (-pair[1], pair[0])):
        load, earlier, index = loads[0]
        heapq.heapreplace(loads, (load + cost, earlier, index))
        found[name] = index
    return found


__all__ = ["Shard", "cut"]
