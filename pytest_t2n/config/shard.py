"""One of several parts of a suite, each for a machine of its own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shard:
    """`index` of `count`, from 1."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Raises ValueError."""
        index, _, count = text.partition("/")
        shard = cls(int(index), int(count))
        if not 1 <= shard.index <= shard.count:
            raise ValueError(text)
        return shard

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def has(self, case: str) -> bool:
        """By a hash of the name: the same on every machine, and all engines of a case stay together."""
        digest = hashlib.sha256(case.encode()).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.index - 1


__all__ = ["Shard"]
