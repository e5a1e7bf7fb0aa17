"""Properties that a value inherits from the values it is computed from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from t2n_core.nnef.graph import Value


class Propagated:
    """A property of values; each value is visited once, however many others depend on it.

    `sources` returns the values that a property depends on, `rule` the property of a value from theirs. There is no
    recursion, because graphs are deeper than Python's stack.
    """

    def __init__(
        self, sources: Callable[[Value], Sequence[Value]], rule: Callable[[Value, Sequence[bool]], bool]
    ) -> None:
        self._sources = sources
        self._rule = rule
        self._known: dict[Value, bool] = {}

    def __call__(self, value: Value) -> bool:
        pending = [value]
        while pending:
            current = pending[-1]
            if current not in self._known:
                sources = self._sources(current)
                unknown = [v for v in sources if v not in self._known]
                if unknown:
                    pending += unknown
                    continue
                self._known[current] = self._rule(current, [self._known[v] for v in sources])
            pending.pop()
        return self._known[value]
