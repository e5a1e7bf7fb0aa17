"""Derive the range of sizes that a captured graph holds for from the decisions that capture made about sizes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.core.relational import Relational

from t2n_core.errors import CaptureError, Origin
from t2n_core.nnef.sizes.dims import Max, Min, Modulo, symbol
from t2n_core.nnef.sizes.ranges import EmptyRangeError, SizeRange, relation_holds
from t2n_core.torch_graph.sizes.decisions import Decision
from t2n_core.torch_graph.sizes.dynamic_axes import SymbolTable

Sizes = Mapping[str, int]
_FAR = tuple(1 << exponent for exponent in range(9, 21))
_PERIODS = range(2, 65)
_MOST_TRIED = 3
"""Most sizes on the other side of a decision that are tried; if there are more, the range excludes them."""
_SMALL = 256
_CONDITIONS = (sympy.Eq, sympy.Le, sympy.Lt, sympy.Ge, sympy.Gt)


class RangeWarning(UserWarning):
    """The archive holds for fewer sizes than all, because of a line of the model."""


@dataclass(frozen=True, slots=True)
class SizeDecision:
    """A decision in the user's symbols, which the range of a graph takes into account."""

    condition: Any
    """Sympy condition, in the user's symbols."""
    origin: Origin
    required: bool = False
    """True where PyTorch itself raises an error if the condition does not hold."""
    translated: bool = False
    """True where the captured program is right on both sides, and only its translation is not."""

    def holds(self, sizes: Sizes) -> bool:
        """Return whether the graph that was captured is also that of these sizes."""
        return _holds(self.condition, sizes)

    def __str__(self) -> str:
        return f"{_said(self.condition)}, decided by {self.origin}"


def named(decisions: Iterable[Decision], table: SymbolTable) -> list[SizeDecision]:
    """Return the decisions about sizes that have a name, in the user's symbols."""
    found = []
    for decision in decisions:
        if table.knows(decision.condition):
            condition = table.condition(decision.condition)
            if condition.free_symbols and all(s.name in table.range.bounds for s in condition.free_symbols):
                found.append(SizeDecision(condition, decision.origin, decision.required, decision.translated))
    return found


def of_emptiness(sizes: SizeRange) -> list[SizeDecision]:
    """Return a decision for each size that may be 0: PyTorch takes `x.shape[0] == 0` to be known, without a guard."""
    origin = Origin("PyTorch's capture, which takes all sizes to be 1 or more")
    may_be_empty = [name for name, (low, _) in sizes.bounds.items() if low == 0]
    return [SizeDecision(sympy.Ge(symbol(name, 0), 1, evaluate=False), origin) for name in may_be_empty]


def narrowed(
    sizes: SizeRange,
    decisions: Iterable[SizeDecision],
    captured: Sizes,
    agrees: Callable[[Sizes], bool],
) -> tuple[SizeRange, list[SizeDecision], list[SizeDecision]]:
    """Return the part of a range for which a graph holds, the decisions that made it smaller, and those that did not
    since the program was right wherever it was tried.

    Args:
        sizes: the range before.
        decisions: what was decided while capturing.
        captured: the sizes that were captured with, at which all decisions hold.
        agrees: tells whether the captured program computes at other sizes what the model does. A decision with few
            sizes on its other side is dropped where it does at all of them.

    Raises CaptureError where a decision has no form as a condition on sizes that an engine could check.
    """
    causes: list[SizeDecision] = []
    dropped: list[SizeDecision] = []
    trials: dict[tuple[tuple[str, int], ...], bool] = {}

    def tried(at: Sizes) -> bool:
        key = tuple(sorted(at.items()))
        if key not in trials:
            trials[key] = agrees(at)
        return trials[key]

    for decision in decisions:
        others = _others(decision, sizes, captured)
        chosen = _trials(decision, others, captured)
        if chosen and all(map(tried, chosen)):
            dropped.append(decision)
            continue
        if others:
            try:
                sizes = sizes.narrowed(*_conditions(decision, sizes, captured))
            except EmptyRangeError as wrong:
                raise CaptureError(f"no size is left for this model: {wrong}", origin=decision.origin) from wrong
            causes.append(decision)
    return sizes, causes, dropped


def _trials(decision: SizeDecision, others: Sequence[Sizes], captured: Sizes) -> list[Sizes]:
    """Return sizes at which running the model shows what it does on the other side of a decision; none if it cannot.

    All sizes on the other side are returned where they are few. Where the other side is that two expressions of several
    symbols are equal, some of them are returned. Large sizes never are.
    """
    if decision.required or decision.translated:
        return []
    small = [at for at in others if all(size <= _SMALL + 4 * captured[name] for name, size in at.items())]
    if isinstance(decision.condition, sympy.Ne) and len(decision.condition.free_symbols) > 1:
        return small
    return small if len(small) == len(others) <= _MOST_TRIED else []


def _others(decision: SizeDecision, sizes: SizeRange, captured: Sizes) -> list[Sizes]:
    """Return sizes in range at which it would have been decided otherwise, a few more than would be tried."""
    names = sorted(s.name for s in decision.condition.free_symbols)
    found: list[Sizes] = []
    for point in _points(names, decision, sizes):
        at = {**captured, **point}
        if sizes.holds(at) and not decision.holds(at):
            found.append(at)
            if len(found) > _MOST_TRIED:
                break
    return found


def _points(names: Sequence[str], decision: SizeDecision, sizes: SizeRange) -> Iterator[Sizes]:
    values = {name: _tried_sizes(name, decision, sizes) for name in names}
    if len(names) == 1:
        yield from ({names[0]: size} for size in values[names[0]])
        return
    small = [[size for size in values[name] if size <= values[name][0] + 3] for name in names]
    yield from (dict(zip(names, point, strict=True)) for point in itertools.product(*small))
    chance = random.Random(5)
    for _ in range(120):
        yield {name: chance.choice(values[name]) for name in names}


def _tried_sizes(name: str, decision: SizeDecision, sizes: SizeRange) -> list[int]:
    """Return the small sizes, those around all numbers of the condition and their products, and some far ones."""
    low, high = sizes.bounds[name]
    numbers = [abs(int(n)) for n in decision.condition.atoms(sympy.Integer)]
    edges = {*numbers, *(a * b for a, b in itertools.combinations_with_replacement(numbers[:12], 2)), *_FAR}
    found = {*range(max(low, 1) + 140), *(edge + step for edge in edges for step in (-1, 0, 1, 2))}
    return sorted(n for n in {low, *found} if n >= low and (high is None or n <= high))


def _conditions(decision: SizeDecision, sizes: SizeRange, captured: Sizes) -> list[Any]:
    """Return conditions of forms that engines can check, which hold at the captured sizes, and where the decision is as
    it was."""
    names = sorted(s.name for s in decision.condition.free_symbols)
    if len(names) == 1:
        return _bounds(names[0], decision, sizes, captured[names[0]])
    parts = decision.condition.args if isinstance(decision.condition, sympy.And) else [decision.condition]
    parts = [_without_extreme(part) for part in parts]
    if not all(isinstance(part, _CONDITIONS) and _is_linear(part) for part in parts):
        simpler = (
            _larger_sizes(decision, sizes, captured)
            or _remainders(decision, sizes, captured)
            or _remainder_of_one(decision, sizes, captured)
        )
        if simpler:
            return simpler
    if not all(isinstance(part, _CONDITIONS) for part in parts):
        raise CaptureError(
            f"the captured graph holds only where {_said(decision.condition)}, which no engine can check",
            origin=decision.origin,
            hint="keep one of the axes static, or compute what does not depend on this condition",
        )
    return list(parts)


def _remainders(decision: SizeDecision, sizes: SizeRange, captured: Sizes) -> list[Any]:
    """Return what remainder each symbol shares with its captured size where the decision is as it was, such as two even
    sizes for `H * W == 4 * (H // 2) * (W // 2)`; none if that does not say it."""
    found: list[Any] = []
    for name in sorted(s.name for s in decision.condition.free_symbols):
        near = range(max(sizes.bounds[name][0], captured[name] - 70), captured[name] + 70)

        def holds(n: int, name: str = name) -> bool:
            return decision.holds({**captured, name: n})

        period = next((p for p in _PERIODS if _is_periodic(holds, near, p)), None)
        if period is not None:
            found.append(sympy.Eq(Modulo(symbol(name), period), captured[name] % period, evaluate=False))
    return found if found and not _others(decision, sizes.narrowed(*found), captured) else []


def _remainder_of_one(decision: SizeDecision, sizes: SizeRange, captured: Sizes) -> list[Any]:
    """Return what remainder one symbol has to share with its captured size so that the decision is as it was whatever
    the others are, such as `A % 25 == 0` for `A * B % 25 == 0`; none if there is no such symbol."""
    names = sorted(s.name for s in decision.condition.free_symbols)
    tried = {name: _tried_sizes(name, decision, sizes) for name in names}
    for name in names:
        for period in _PERIODS:
            alike = [n for n in tried[name] if n % period == captured[name] % period]
            chance = random.Random(period)
            points = ({n: chance.choice(tried[n]) for n in names} | {name: chance.choice(alike)} for _ in range(60))
            if all(decision.holds({**captured, **point}) for point in points):
                found = [sympy.Eq(Modulo(symbol(name), period), captured[name] % period, evaluate=False)]
                return [] if _others(decision, sizes.narrowed(*found), captured) else found
    return []


def _is_linear(relation: Any) -> bool:
    return all(term.is_number or term.is_Symbol for side in relation.args for term in side.as_coefficients_dict())


def _larger_sizes(decision: SizeDecision, sizes: SizeRange, captured: Sizes) -> list[Any]:
    """Return smallest sizes from which on a decision is as it was, such as `H >= 2` and `W >= 2` for
    `(H // 2) * (W // 2) != 0`; none if there are no such."""
    names = sorted(s.name for s in decision.condition.free_symbols)
    for least in range(2, 10):
        lows = {name: max(sizes.bounds[name][0], min(least, captured[name])) for name in names}
        larger = [sympy.Ge(symbol(name), low, evaluate=False) for name, low in lows.items()]
        if not _others(decision, sizes.narrowed(*larger), captured):
            return larger
    return []


def _without_extreme(part: Any) -> Any:
    """Return `a == Min(a, b)` as `a <= b`, and the like."""
    if isinstance(part, sympy.Eq):
        for one, other in (part.args, part.args[::-1]):
            if isinstance(other, Min | Max) and one in other.args and len(other.args) == 2:
                (rest,) = (a for a in other.args if a != one)
                return (sympy.Le if isinstance(other, Min) else sympy.Ge)(one, rest, evaluate=False)
    return part


def _bounds(name: str, decision: SizeDecision, sizes: SizeRange, here: int) -> list[Any]:
    """Return the bounds of the sizes around `here` that are decided alike, or the remainder that they share."""
    size = symbol(name, *sizes.bounds[name])
    values = _tried_sizes(name, decision, sizes)

    def holds(n: int) -> bool:
        return decision.holds({name: n})

    near = range(max(values[0], here - 70), here + 70)
    period = next((p for p in _PERIODS if _is_periodic(holds, near, p)), None)
    if period is not None and all(holds(n) for n in values if n % period == here % period):
        return [sympy.Eq(Modulo(size, period), here % period, evaluate=False)]
    below = [n for n in values if n < here]
    above = [n for n in values if n > here]
    low = _edge(holds, here, reversed(below))
    high = _edge(holds, here, above)
    found = []
    if below and low > values[0]:
        found.append(sympy.Ge(size, low, evaluate=False))
    if above and (high < above[-1] or not holds(above[-1])):
        found.append(sympy.Le(size, high, evaluate=False))
    return found


def _is_periodic(holds: Callable[[int], bool], near: range, period: int) -> bool:
    flags = [holds(n) for n in near]
    return not all(flags[:period]) and any(flags[:period]) and flags[period:] == flags[:-period]


def _edge(holds: Callable[[int], bool], here: int, values: Iterable[int]) -> int:
    """Return the last size on the way from `here` through `values` that is decided as `here`."""
    last = here
    for n in values:
        if not holds(n):
            inside, outside = last, n
            while abs(outside - inside) > 1:
                middle = (inside + outside) // 2
                inside, outside = (middle, outside) if holds(middle) else (inside, middle)
            return inside
        last = n
    return last


def _holds(condition: Any, sizes: Sizes) -> bool:
    if condition in (sympy.true, sympy.false):
        return bool(condition)
    if isinstance(condition, sympy.Not):
        return not _holds(condition.args[0], sizes)
    if isinstance(condition, sympy.And | sympy.Or):
        return (all if isinstance(condition, sympy.And) else any)(_holds(part, sizes) for part in condition.args)
    return relation_holds(condition, sizes)


def _said(condition: Any) -> str:
    if isinstance(condition, Relational):
        return f"{condition.lhs} {condition.rel_op} {condition.rhs}"
    return str(condition)


__all__ = ["RangeWarning", "SizeDecision", "named", "narrowed", "of_emptiness"]
