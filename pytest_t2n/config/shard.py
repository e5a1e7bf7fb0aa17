"""Shards: parts of a suite, each for a machine of its own."""

from __future__ import annotations

import hashlib
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

    def has(self, case: str) -> bool:
        """Return True if a case is in this shard: by a hash of its name, so that all its engines stay together."""
        digest = hashlib.sha256(case.encode()).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.index - 1


__all__ = ["Shard"]
