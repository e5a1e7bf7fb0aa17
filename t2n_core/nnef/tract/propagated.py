"""Properties that a value has from those it is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from t2n_core.nnef.graph import Value


class Inherited:
    """A property of values; each value is looked at once, however many are made of it.

    `sources` gives the values that count, `rule` the property from that of these. No recursion: graphs are deeper than
    Python's stack.
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


def known() -> Inherited:
    """Whether a value is a weight, or computed from nothing else, which the engine folds into weights."""

    def sources(value: Value) -> list[Value]:
        made_here = value.weight is None and value.producer is not None
        return list(value.producer.inputs()) if made_here and value.producer else []

    return Inherited(sources, lambda value, found: value.weight is not None or (bool(found) and all(found)))
