"""A quirk: a kind of statement, the releases that get it wrong, and the repair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from packaging.version import Version

from t2n_core.nnef.arguments import replace_values
from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import Operation, Value
from t2n_core.nnef.releases import ALL_RELEASES, Releases
from t2n_core.nnef.tract.barriers import fence
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.graph_facts import GraphFacts


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that is to be written, or that stands in a graph."""

    operator: str
    arguments: Mapping[str, Any]
    results: Sequence[Expected]
    facts: GraphFacts

    @classmethod
    def of(cls, operation: Operation, facts: GraphFacts) -> Statement:
        """Return the statement of an operation in a graph."""
        results = [Expected(value.shape, value.dtype) for value in operation.outputs]
        return cls(operation.name, operation.arguments, results, facts)

    def get(self, name: str) -> Any:
        """Return an argument, or None if it is not given."""
        return self.arguments.get(name)

    def with_arguments(self, **arguments: Any) -> Statement:
        """Return the same statement with some arguments replaced."""
        return replace(self, arguments={**self.arguments, **arguments})


Predicate: TypeAlias = Callable[[Statement], bool]
Repair: TypeAlias = Callable[[TractBuilder, Statement], Statement]


@dataclass(frozen=True, slots=True)
class Quirk:
    """One kind of statement that some releases get wrong.

    The emitter writes the statement that `repair` returns in its place. A statement of a finished graph for which
    `applies` still holds is refused, with `reason` and `safe` as the message.
    """

    name: str
    operators: frozenset[str]
    releases: tuple[Releases, ...]
    applies: Predicate
    repair: Repair
    reason: str
    """The end of a sentence that says what the engine does."""
    safe: str
    """The statement to write instead, for people who write them by hand."""

    def concerns(self, version: Version) -> bool:
        """Return whether this release has the quirk."""
        return any(version in one for one in self.releases)


BARRIER_BEFORE = "`tract_core_trilu` of that operand before, with a diagonal that keeps all"
"""The `safe` of all quirks whose repair is a barrier."""


def fenced(g: TractBuilder, statement: Statement, operands: Sequence[Value]) -> Statement:
    """Return the statement with some of its operands, also those in lists, followed by a barrier."""
    behind = {operand: fence(g, operand) for operand in operands}
    arguments = {name: replace_values(a, lambda v: behind.get(v, v)) for name, a in statement.arguments.items()}
    return statement.with_arguments(**arguments)


def quirk(
    operators: str,
    *releases: tuple[str | None, str | None],
    when: Predicate,
    reason: str,
    safe: str,
) -> Callable[[Repair], Quirk]:
    """Return a decorator that makes a quirk of its repair, under the name of the function.

    `operators` are names with spaces between. Each of `releases` is a pair: the first release with the quirk and the
    first without it again, None where that end is open. Without a pair all releases have it.
    """

    def decorate(repair: Repair) -> Quirk:
        ranges = tuple(Releases.of(*pair) for pair in releases) or (ALL_RELEASES,)
        return Quirk(repair.__name__, frozenset(operators.split()), ranges, when, repair, reason, safe)

    return decorate


__all__ = ["BARRIER_BEFORE", "Quirk", "Statement", "fenced", "quirk"]
