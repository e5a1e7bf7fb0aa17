"""The operators of optimised graphs on the page: each distinct count once, and for each cell its number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MOST = 20_000
"""Most distinct counts on a page; cells with further ones have theirs in `matrix.jsonl` alone."""
NONE = -1
"""The number of a cell without operators."""


class OperatorCounts:
    """A numbered list of distinct counts of operators."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[tuple[str, int], ...], int] = {}
        self._names: dict[str, int] = {}

    def number(self, operators: Mapping[str, int]) -> int:
        """Return the number of a count, which is new or known."""
        key = tuple(sorted(operators.items()))
        if not key or (key not in self._numbers and len(self._numbers) >= _MOST):
            return NONE
        return self._numbers.setdefault(key, len(self._numbers))

    def fields(self) -> dict[str, Any]:
        """Return the names, and each count as a flat list of pairs: the place of a name, and its number of nodes."""
        place = self._names.setdefault
        counts = [[part for name, count in key for part in (place(name, len(self._names)), count)]
                  for key in self._numbers]  # fmt: skip
        return {"names": list(self._names), "counts": counts}
