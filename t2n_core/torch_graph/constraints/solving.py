"""Solve for sizes at which a condition does not hold, or prove that there are none in a range."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
from sympy.core.relational import Relational

from t2n_core.nnef.sizes.dims import Modulo, as_dim, evaluate, symbol
from t2n_core.nnef.sizes.ranges import Bounds, SizeRange, relation_holds
from t2n_core.nnef.sizes.size_functions import never_negative
from t2n_core.torch_graph.constraints.eventual import Course, UnsolvedError, course

Sizes = Mapping[str, int]
MOST = 3
"""The other side of a decision has few sizes if it has no more than these."""
_SCANNED = 1 << 16
"""Most sizes of one symbol that are tested one by one."""
_UNSOLVED = 1 << 12
"""Sizes of one symbol that are tested if a condition cannot be solved."""
_BOX = 1 << 13
"""Most sets of sizes of several symbols that are tested one by one."""
_FOUND = 24
"""Sets of sizes of several symbols from which the most common ones are chosen."""
_SOLVED = 40
"""Sets of sizes of all other symbols at which a condition is solved for one."""


@dataclass(frozen=True, slots=True)
class OtherSide:
    """Sizes in a range at which a condition does not hold."""

    points: tuple[Sizes, ...]
    """Sizes of all symbols, up to one more than `MOST`."""
    complete: bool
    """True if there are no others."""

    @property
    def is_empty(self) -> bool:
        return self.complete and not self.points

    @property
    def is_few(self) -> bool:
        return self.complete and len(self.points) <= MOST


@dataclass(frozen=True, slots=True)
class Truths:
    """Truth values of a condition at the sizes of one symbol, from the smallest on, with gaps.

    If `exact`, a size in a gap, or after the last size, has the value of the size a multiple of the period before.
    """

    sizes: Sequence[int]
    flags: Sequence[bool]
    period: int
    exact: bool
    endless: bool
    """True if there are sizes after the last one."""

    def true_sizes(self) -> tuple[list[int], bool]:
        """Return the sizes at which it holds, and whether it also holds in a gap or beyond the last size."""
        sizes = [size for size, flag in zip(self.sizes, self.flags, strict=True) if flag]
        ends = [index for index, size in enumerate(self.sizes[1:], 1) if size > self.sizes[index - 1] + 1]
        ends += [len(self.sizes)] if self.endless else []
        return sizes, any(any(self.flags[max(0, end - self.period) : end]) for end in ends)

    def around(self, here: int) -> tuple[int | None, int | None]:
        """Return the first and last size of the interval around a size in which it holds; None if unbounded."""
        pairs = list(zip(self.sizes, self.flags, strict=True))
        low = next((size + 1 for size, flag in reversed(pairs) if size < here and not flag), None)
        high = next((size - 1 for size, flag in pairs if size > here and not flag), None)
        return low, high

    def all_like(self, here: int, period: int) -> bool:
        """Return whether it holds at all sizes that share this one's remainder."""
        return all(flag for size, flag in zip(self.sizes, self.flags, strict=True) if size % period == here % period)


def other_side(condition: Any, sizes: SizeRange, captured: Sizes) -> OtherSide:
    """Return sizes in a range at which a condition does not hold; the sizes of other symbols are the captured ones.

    A condition on one symbol is decided exactly. Sizes of several symbols are searched: all of them if there are few,
    otherwise the solutions for each symbol at some sizes of the others. An empty result is always a proof.
    """
    condition = _in_range(condition, sizes)
    if holds_always(condition):
        return OtherSide((), complete=True)
    parts = _parts(negate(condition))
    names = {s.name for part in parts for s in part.free_symbols}
    tied = [_in_range(constraint, sizes) for constraint in sizes.conditions]
    while True:
        related = [constraint for constraint in tied if names & {s.name for s in constraint.free_symbols}]
        names |= {s.name for constraint in related for s in constraint.free_symbols}
        parts += related
        tied = [constraint for constraint in tied if constraint not in related]
        if not related:
            break
    system = _System(parts, dict(sizes.bounds), dict(captured))
    if len(names) > 1:
        system.reduce()
    conjunction = sympy.And(*system.parts, evaluate=False)
    free = sorted({s.name for s in conjunction.free_symbols})
    if any(holds_always(negate(part)) for part in system.parts):
        return OtherSide((), complete=True)
    if len(free) > 1:
        return _of_several(system, free, sizes)
    loose = (names | system.symbols()) - system.equal.keys() - set(free)  # any of their sizes fits
    if not free:
        points = [system.captured] if holds(conjunction, captured) else []
        exact = True
    else:
        (name,) = free
        bounds = system.bounds[name]
        table = truths(conjunction, name, *bounds)
        at, more = table.true_sizes()
        points = [{**system.captured, name: size} for size in at]
        exact = table.exact and not more
    inside = [point for point in map(system.full_point, points) if sizes.holds(point)]
    exact = exact and len(inside) == len(points) and not (loose and points)
    return OtherSide(tuple(inside[: MOST + 1]), exact)


def _parts(condition: Any) -> list[Any]:
    """Return conditions whose conjunction is this one."""
    if isinstance(condition, sympy.And):
        return [part for conjunct in condition.args for part in _parts(conjunct)]
    return [condition]


@dataclass(slots=True)
class _System:
    """A conjunction of conditions, with as few symbols as its equations allow."""

    parts: list[Any]
    bounds: dict[str, Bounds]
    captured: dict[str, int]
    equal: dict[str, Any] = field(default_factory=dict)
    """Eliminated symbols -> their values."""

    def reduce(self) -> None:
        """Eliminate each symbol that equals an expression, has a fixed remainder, or can have only one size."""
        while True:
            solved = next((solution for part in self.parts if (solution := self._solve(part)) is not None), None)
            solved = solved or self._only_size()
            if solved is None:
                return
            symbol, other, equation = solved
            low, high = self.bounds[symbol.name]
            limits = [sympy.Ge(other, low, evaluate=False)]
            limits += [] if high is None else [sympy.Le(other, high, evaluate=False)]
            rest = [substitute(part, {symbol: other}) for part in self.parts if part is not equation]
            self.parts = [part for part in [*rest, *limits] if not holds_always(part)]
            self.equal = {name: size.xreplace({symbol: other}) for name, size in self.equal.items()} | {
                symbol.name: other
            }

    def _only_size(self) -> tuple[Any, Any, Any] | None:
        """Return a symbol that conditions on it alone restrict to one size, and that size; record a contradiction."""
        alone: dict[Any, list[Any]] = {}
        for part in self.parts:
            if len(part.free_symbols) == 1:
                alone.setdefault(next(iter(part.free_symbols)), []).append(part)
        for free_symbol, parts in alone.items():
            table = truths(sympy.And(*parts, evaluate=False), free_symbol.name, *self.bounds[free_symbol.name])
            sizes, more = table.true_sizes()
            if not table.exact or more or len(sizes) > 1:
                continue
            if not sizes:
                self.parts = [sympy.false]
                return None
            return free_symbol, sympy.Integer(sizes[0]), None
        return None

    def symbols(self) -> set[str]:
        """Return the symbols of the conditions, and of the values of eliminated symbols."""
        return {s.name for expression in (*self.parts, *self.equal.values()) for s in expression.free_symbols}

    def _solve(self, part: Any) -> tuple[Any, Any, Any] | None:
        if not isinstance(part, sympy.Eq):
            return None
        for side, other in (part.args, part.args[::-1]):
            if side.is_Symbol and side != other and (other.is_Symbol or other.is_Integer):
                return side, other, part
            if isinstance(side, Modulo) and side.args[0].is_Symbol and side.args[1].is_Integer and other.is_Integer:
                size, divisor = side.args[0], int(side.args[1])
                if 0 <= int(other) < divisor:
                    return size, divisor * self._quotient(size.name, divisor) + other, part
        return None

    def _quotient(self, name: str, divisor: int) -> Any:
        """Return a new symbol for the quotient of a size."""
        low, high = self.bounds[name]
        quotient = f"{name} // {divisor}"
        self.bounds[quotient] = (low // divisor, None if high is None else high // divisor)
        self.captured[quotient] = self.captured[name] // divisor
        return symbol(quotient, *self.bounds[quotient])

    def full_point(self, point: Sizes) -> Sizes:
        """Return a point with eliminated symbols' sizes added and new symbols' sizes removed."""
        sizes = {**point, **{name: evaluate(as_dim(size), point) for name, size in self.equal.items()}}
        return {name: size for name, size in sizes.items() if "//" not in name}


def _of_several(system: _System, names: Sequence[str], sizes: SizeRange) -> OtherSide:
    spans = [system.bounds[name] for name in names]
    counts = [high - low + 1 for low, high in spans if high is not None]
    small = len(counts) == len(names) and math.prod(counts) <= _BOX
    conjunction = sympy.And(*system.parts, evaluate=False)
    points: list[Sizes] = []
    for point in _box(names, spans) if small else _search(conjunction, names, system):
        reduced = {**system.captured, **point}
        at = system.full_point(reduced) if holds(conjunction, reduced) else None
        if at is not None and sizes.holds(at) and at not in points:
            points.append(at)
            if len(points) >= _FOUND:
                break
    # PyTorch specialises sizes of 0 and 1, so they would prove nothing about other sizes
    points.sort(key=lambda at: (sum(size < 2 for size in at.values()), max(at.values())))
    return OtherSide(tuple(points[: MOST + 1]), small and len(points) <= MOST)


def _box(names: Sequence[str], spans: Sequence[tuple[int, int | None]]) -> Iterator[Sizes]:
    for point in itertools.product(*(range(low, (high or low) + 1) for low, high in spans)):
        yield dict(zip(names, point, strict=True))


def _search(conjunction: Any, names: Sequence[str], system: _System) -> Iterator[Sizes]:
    """Yield sets of sizes around the solutions for one symbol.

    The others have small sizes, their captured ones, and the integers in the condition.
    """
    numbers = {abs(int(n)) for n in conjunction.atoms(sympy.Integer)}
    values = {}
    for name in names:
        low, high = system.bounds[name]
        near = [
            system.captured[name],
            *range(low, low + 6),
            *sorted(numbers),
            *(n // 2 for n in sorted(numbers)),
            14,
            16,
            64,
        ]
        values[name] = [n for n in dict.fromkeys(near) if n >= low and (high is None or n <= high)]
    for name in names:
        low, high = system.bounds[name]
        rest = [other for other in names if other != name]
        for point in itertools.islice(_diagonally([values[other] for other in rest]), _SOLVED):
            others = dict(zip(rest, point, strict=True))
            try:
                turns = course(conjunction, name, others).turns
            except (UnsolvedError, ZeroDivisionError):
                turns = ()
            for size in dict.fromkeys((*values[name], *turns[:256])):
                if size >= low and (high is None or size <= high):
                    yield {**others, name: size}


def _diagonally(values: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Yield the combinations, starting from the first values."""
    places = itertools.product(*(range(min(len(candidates), 12)) for candidates in values))
    for indices in sorted(places, key=sum):
        yield tuple(candidates[i] for candidates, i in zip(values, indices, strict=True))


def truths(condition: Any, name: str, low: int, high: int | None, reach: int = 0) -> Truths:
    """Return the truth of a condition on one symbol at the sizes in its bounds, and at all up to `reach`."""
    sizes: Sequence[int]
    try:
        goes = course(condition, name, {})
        sizes, period, exact = _looked_at(goes, low, reach)
    except (UnsolvedError, ZeroDivisionError):
        sizes, period, exact = range(low, max(low + _UNSOLVED, reach)), 1, False
    if high is not None:
        exact = exact or high <= sizes[-1]
        inside = [size for size in sizes if size <= high]
        if inside[-1] < high:  # the sizes of the last period of a gap
            inside += range(max(inside[-1] + 1, high + 1 - period), high + 1)
        sizes = inside
    flags = [holds(condition, {name: n}) for n in sizes]
    return Truths(sizes, flags, period, exact, endless=high is None or sizes[-1] < high)


def _looked_at(goes: Course, low: int, reach: int) -> tuple[Sequence[int], int, bool]:
    """Return the sizes to test, the period of the condition, and whether these determine it everywhere."""
    stop = max(goes.start, low, reach) + goes.period
    if stop - low <= _SCANNED:
        return range(low, stop), goes.period, True
    if goes.has_all_turns and len(goes.turns) * 2 * goes.period <= _SCANNED:
        places = [range(turn - goes.period, turn + goes.period + 1) for turn in (*goes.turns, stop)]
        near = range(low, max(low + 2 * goes.period, reach))
        return sorted({size for span in (near, *places) for size in span if size >= low}), goes.period, True
    return range(low, max(low + _SCANNED, reach)), goes.period, False


def holds_always(condition: Any) -> bool:
    """Return whether a condition is proven to hold at all sizes of its symbols."""
    if condition in (sympy.true, sympy.false):
        return bool(condition)
    if isinstance(condition, sympy.And):
        return all(map(holds_always, condition.args))
    if isinstance(condition, sympy.Or):
        return any(map(holds_always, condition.args))
    if isinstance(condition, sympy.Not):
        return isinstance(condition.args[0], Relational | sympy.And | sympy.Or) and holds_always(
            negate(condition.args[0])
        )
    if not isinstance(condition, Relational):
        return False
    over = sympy.expand(condition.lhs - condition.rhs)
    return _PROOFS[condition.rel_op](over)


_PROOFS: Mapping[str, Callable[[Any], bool]] = {
    "==": lambda over: bool(over == 0),
    "!=": lambda over: never_negative(over - 1) or never_negative(-over - 1),
    ">=": never_negative,
    ">": lambda over: never_negative(over - 1),
    "<=": lambda over: never_negative(-over),
    "<": lambda over: never_negative(-over - 1),
}


def negate(condition: Any) -> Any:
    """Return the negation of a condition."""
    if isinstance(condition, sympy.Not):
        return condition.args[0]
    if isinstance(condition, sympy.And | sympy.Or):
        kind = sympy.Or if isinstance(condition, sympy.And) else sympy.And
        return kind(*map(negate, condition.args), evaluate=False)
    if isinstance(condition, Relational):
        return _OPPOSITES[condition.rel_op](*condition.args, evaluate=False)
    return sympy.Not(condition)


_OPPOSITES: Mapping[str, Any] = {
    "==": sympy.Ne,
    "!=": sympy.Eq,
    ">=": sympy.Lt,
    ">": sympy.Le,
    "<=": sympy.Gt,
    "<": sympy.Ge,
}


def holds(condition: Any, sizes: Sizes) -> bool:
    """Return whether a condition holds at these sizes; False where it divides by 0."""
    if condition in (sympy.true, sympy.false):
        return bool(condition)
    if isinstance(condition, sympy.Not):
        return not holds(condition.args[0], sizes)
    if isinstance(condition, sympy.And | sympy.Or):
        return (all if isinstance(condition, sympy.And) else any)(holds(part, sizes) for part in condition.args)
    return relation_holds(condition, sizes)


def _in_range(condition: Any, sizes: SizeRange) -> Any:
    """Return a condition whose symbols carry the bounds of a range."""
    return substitute(condition, {s: symbol(s.name, *sizes.bounds[s.name]) for s in condition.free_symbols})


def substitute(condition: Any, places: Mapping[Any, Any]) -> Any:
    """Return a condition with its symbols replaced by other expressions, without evaluating it."""
    if isinstance(condition, sympy.And | sympy.Or | sympy.Not):
        return condition.func(*(substitute(part, places) for part in condition.args), evaluate=False)
    if isinstance(condition, Relational):
        return condition.func(*(side.xreplace(places) for side in condition.args), evaluate=False)
    return condition
