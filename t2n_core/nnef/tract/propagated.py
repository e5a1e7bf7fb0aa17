"""Properties that a value takes over from the values it is computed from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from t2n_core.nnef.graph import Value

BARRIER = "tract_core_trilu"
"""The operator that no rewriting of the engine passes."""


class Propagated:
    """A property of values; each value is visited once, however many others are computed from it.

    `sources` returns the values that decide, `rule` the property of a value from the properties of these. There is no
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
            one = pending[-1]
            if one not in self._known:
                sources = self._sources(one)
                unknown = [v for v in sources if v not in self._known]
                if unknown:
                    pending += unknown
                    continue
                self._known[one] = self._rule(one, [self._known[v] for v in sources])
            pending.pop()
        return self._known[value]


def known() -> Propagated:
    """Return the property of being a weight, or computed from weights alone, which the engine folds into a weight."""
    return Propagated(_made_of, lambda value, found: value.weight is not None or (bool(found) and all(found)))


def folded() -> Propagated:
    """Return the property of `known` for values whose dynamic shape the engine may drop: not beyond a barrier."""

    def is_folded(value: Value, found: Sequence[bool]) -> bool:
        is_barrier = value.producer is not None and value.producer.name == BARRIER
        return not is_barrier and (value.weight is not None or (bool(found) and all(found)))

    return Propagated(_made_of, is_folded)


def _made_of(value: Value) -> list[Value]:
    made_here = value.weight is None and value.producer is not None
    return list(value.producer.inputs()) if made_here and value.producer else []
