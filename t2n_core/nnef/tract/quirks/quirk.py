"""Errata of releases: a kind of operation, the releases that get it wrong, and a repair where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from packaging.version import Version

from t2n_core.nnef.arguments import replace_values
from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import Operation, Value
from t2n_core.nnef.releases import ALL_RELEASES, Releases
from t2n_core.nnef.signatures import REQUIRED, Signature
from t2n_core.nnef.tract.barriers import barrier
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.graph_facts import GraphFacts


@dataclass(frozen=True, slots=True)
class OperationView:
    """An operation that is about to be written, or an operation of a graph."""

    operator: str
    arguments: Mapping[str, Any]
    results: Sequence[Expected]
    facts: GraphFacts

    @classmethod
    def of(cls, operation: Operation, facts: GraphFacts) -> OperationView:
        """Return the view of an operation in a graph."""
        results = [Expected(value.shape, value.dtype) for value in operation.outputs]
        return cls(operation.name, operation.arguments, results, facts)

    def get(self, name: str) -> Any:
        """Return an argument, or None if it is not passed."""
        return self.arguments.get(name)

    def with_defaults(self, signature: Signature) -> OperationView:
        """Return the same operation with the defaults of the arguments that are not passed."""
        defaults = {p.name: p.default for p in signature.parameters if p.default is not REQUIRED}
        return OperationView(self.operator, {**defaults, **self.arguments}, self.results, self.facts)

    def with_arguments(self, **arguments: Any) -> OperationView:
        """Return the same operation with some arguments replaced."""
        return replace(self, arguments={**self.arguments, **arguments})


Predicate: TypeAlias = Callable[[OperationView], bool]
Repair: TypeAlias = Callable[[TractBuilder, OperationView], OperationView]
AnErratum = TypeVar("AnErratum", bound="Erratum")


@dataclass(frozen=True, slots=True)
class Erratum:
    """One kind of operation that some releases get wrong.

    An operation of a finished graph for which `applies` holds is refused, with `reason` and `safe` as the message.
    """

    operators: frozenset[str]
    releases: tuple[Releases, ...]
    applies: Predicate
    reason: str
    """The end of a sentence that states what the engine does."""
    safe: str
    """The operation to write instead, for users who write NNEF by hand."""

    def concerns(self, version: Version) -> bool:
        """Return whether this release has the erratum."""
        return any(version in release_range for release_range in self.releases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirk(Erratum):
    """An erratum with a repair: the emitter writes the operation that `repair` returns in its place."""

    name: str
    repair: Repair


def by_operator(errata: Iterable[AnErratum], version: Version) -> dict[str, tuple[AnErratum, ...]]:
    """Return the errata of a release, by operator, in their order."""
    table: dict[str, tuple[AnErratum, ...]] = {}
    for erratum in errata:
        if erratum.concerns(version):
            table.update({operator: (*table.get(operator, ()), erratum) for operator in erratum.operators})
    return table


BARRIER_BEFORE = (
    "`tract_core_trilu` of that operand before, with a diagonal that keeps all; from 0.23.9 on `tract_core_gather` of "
    "all elements along its first axis, if that has a fixed size above 1, is faster"
)
"""The `safe` of all quirks whose repair is a barrier."""
GATHER_BEFORE = "`tract_core_gather` of all elements of that operand before, along any axis"
"""The same in releases without `tract_core_trilu`."""
BARRIER_OF_AXES_BEFORE = (
    "`concat` of that operand alone before, along the axis in question; from 0.21.6 on `tract_core_trilu` of it, from "
    "0.23.9 on `tract_core_gather` of all elements along an axis of fixed size above 1"
)
"""The `safe` of those whose repair is a barrier for rewrites of some axes."""


def with_barriers(g: TractBuilder, operation: OperationView, operands: Sequence[Value]) -> OperationView:
    """Return the operation with a barrier after some of its operands, also those in lists."""
    barriers = {operand: barrier(g, operand) for operand in operands}
    arguments = {name: replace_values(a, lambda v: barriers.get(v, v)) for name, a in operation.arguments.items()}
    return operation.with_arguments(**arguments)


def quirk(
    operators: str,
    *releases: tuple[str | None, str | None],
    when: Predicate,
    reason: str,
    safe: str,
) -> Callable[[Repair], Quirk]:
    """Return a decorator that turns a repair into a quirk with the name of the function.

    `operators` are names separated by spaces. Each of `releases` is a pair: the first release with the quirk and the
    first without it again, None where that end is open. Without a pair all releases have it.
    """

    def decorate(repair: Repair) -> Quirk:
        names = frozenset(operators.split())
        return Quirk(names, releases_of(*releases), when, reason, safe, name=repair.__name__, repair=repair)

    return decorate


def releases_of(*pairs: tuple[str | None, str | None]) -> tuple[Releases, ...]:
    """Return the ranges of pairs as in `quirk`."""
    return tuple(Releases.of(*pair) for pair in pairs) or (ALL_RELEASES,)
