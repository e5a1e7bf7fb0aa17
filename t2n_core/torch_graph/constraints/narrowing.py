"""Derive the range of sizes for which a captured graph is valid from the decisions on sizes during capture."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.core.relational import Relational

from t2n_core.errors import CaptureError, Origin, RangeWarning
from t2n_core.nnef.sizes.dims import Max, Min, Modulo, symbol
from t2n_core.nnef.sizes.ranges import CONDITIONS, EmptyRangeError, SizeRange
from t2n_core.torch_graph.constraints.dynamic_axes import SymbolTable
from t2n_core.torch_graph.constraints.guards import Decision
from t2n_core.torch_graph.constraints.solving import OtherSide, Sizes, holds, negate, other_side, truths

_PERIODS = range(2, 65)
_LARGE = 1 << 12
"""No proof captures sizes larger than this and than four times the captured ones."""
_APART = 4
"""Most conditions `a != b` in a range: an archive declares 2 scenarios for one, 4 for two, 8 for three."""


@dataclass(frozen=True, slots=True)
class SizeDecision:
    """A decision in the user's symbols, from which the range of a graph is derived."""

    condition: Any
    """Sympy condition, in the user's symbols."""
    origin: Origin
    required: bool = False
    """True if PyTorch itself raises an error where the condition does not hold."""
    translated: bool = False
    """True if the captured program is right on both sides, and only its translation is not."""

    def holds(self, sizes: Sizes) -> bool:
        """Return whether the captured graph is also valid for these sizes."""
        return holds(self.condition, sizes)

    def __str__(self) -> str:
        return f"{_condition_text(self.condition)}, decided by {self.origin}"


def with_user_symbols(decisions: Iterable[Decision], table: SymbolTable) -> list[SizeDecision]:
    """Return the decisions about sizes that have a name, in the user's symbols."""
    size_decisions = []
    for decision in decisions:
        if table.knows(decision.condition):
            condition = table.condition(decision.condition)
            if condition.free_symbols and all(s.name in table.range.bounds for s in condition.free_symbols):
                size_decisions.append(SizeDecision(condition, decision.origin, decision.required, decision.translated))
    return size_decisions


def of_emptiness(sizes: SizeRange) -> list[SizeDecision]:
    """Return a decision for each size that may be 0: PyTorch assumes `x.shape[0] != 0` without a guard."""
    origin = Origin("PyTorch's capture, which takes all sizes to be 1 or more")
    may_be_empty = [name for name, (low, _) in sizes.bounds.items() if low == 0]
    return [SizeDecision(sympy.Ge(symbol(name, 0), 1, evaluate=False), origin) for name in may_be_empty]


def narrow_range(
    sizes: SizeRange, decisions: Iterable[SizeDecision], captured: Sizes, proves: Callable[[Any, SizeRange], bool]
) -> tuple[SizeRange, list[SizeDecision], list[SizeDecision]]:
    """Return the part of a range for which a graph is valid, and the decisions.

    The first decisions made the range smaller; the others did not, since the program is proven to be right on their
    other side.

    Args:
        sizes: the range before.
        decisions: the decisions of the capture.
        captured: the sizes of the capture, at which all decisions hold.
        proves: returns whether the captured program is proven to be right wherever a condition holds in a range. It is
            called for other sides of a few sizes, or of one equation of several symbols.

    Raises CaptureError if a decision cannot be written as a condition on sizes that an engine could check.
    """
    causes: list[SizeDecision] = []
    dropped: list[SizeDecision] = []
    for decision in sorted(decisions, key=_turn):
        others = other_side(decision.condition, sizes, captured)
        if others.is_empty or (decision.required and not others.points):
            continue  # PyTorch itself raises an error where its requirement does not hold
        if _may_be_alike(decision, others, captured) and proves(negate(decision.condition), sizes):
            dropped.append(decision)
            continue
        try:
            sizes = sizes.narrowed(*_conditions(decision, sizes, captured))
        except EmptyRangeError as wrong:
            raise CaptureError(f"no size is left for this model: {wrong}", origin=decision.origin) from wrong
        if sum(isinstance(condition, sympy.Ne) for condition in sizes.conditions) > _APART:
            raise CaptureError(
                f"the model decides by more than {_APART} equations of sizes; the last is {decision}",
                origin=decision.origin,
                hint="keep one of the axes static, or compute what does not depend on these conditions",
            )
        causes.append(decision)
    return sizes, causes, dropped


def warn_of_range(sizes: SizeRange, decisions: Iterable[SizeDecision]) -> None:
    """Warn the caller's caller of a range that the model's own decisions made smaller."""
    decided = [str(decision) for decision in decisions if not decision.required]
    if decided:
        warnings.warn(f"the archive holds only for {sizes}: {'; '.join(decided[:3])}", RangeWarning, stacklevel=3)


def _turn(decision: SizeDecision) -> tuple[bool, bool]:
    """Return the sort key of a decision: those without a proof, or with one symbol, leave fewer sizes to the rest."""
    return not decision.required, len(decision.condition.free_symbols) > 1


def _may_be_alike(decision: SizeDecision, others: OtherSide, captured: Sizes) -> bool:
    """Return whether a proof is worth its captures: the other side is a few sizes, or an equation."""
    if decision.required or decision.translated or not others.points:
        return False
    if any(size > _LARGE + 4 * captured[name] for name, size in others.points[0].items()):
        return False
    equation = isinstance(decision.condition, sympy.Ne) and len(decision.condition.free_symbols) > 1
    return equation or others.is_few


def _conditions(decision: SizeDecision, sizes: SizeRange, captured: Sizes) -> list[Any]:
    """Return conditions that engines can check, that hold at the captured sizes, and that imply the same decision."""
    names = sorted(s.name for s in decision.condition.free_symbols)
    if len(names) == 1:
        return _bounds(names[0], decision, sizes, captured[names[0]])
    parts = decision.condition.args if isinstance(decision.condition, sympy.And) else [decision.condition]
    parts = [_without_extreme(part) for part in parts]
    if not all(isinstance(part, CONDITIONS) and _is_linear(part) for part in parts):
        simpler = (
            _larger_sizes(decision, sizes, captured)
            or _remainders(decision, sizes, captured)
            or _remainder_of_one(decision, sizes, captured)
        )
        if simpler:
            return simpler
    if not all(isinstance(part, CONDITIONS) for part in parts):
        raise CaptureError(
            f"the captured graph holds only where {_condition_text(decision.condition)}, which no engine can check",
            origin=decision.origin,
            hint="keep one of the axes static, or compute what does not depend on this condition",
        )
    return list(parts)


def _remainders(decision: SizeDecision, sizes: SizeRange, captured: Sizes) -> list[Any]:
    """Return remainders of the symbols that imply the same decision; empty if there are none.

    They match the captured sizes, such as two even sizes for `H * W == 4 * (H // 2) * (W // 2)`.
    """
    remainders: list[Any] = []
    for name in sorted(s.name for s in decision.condition.free_symbols):
        near = range(max(sizes.bounds[name][0], captured[name] - 70), captured[name] + 70)
        flags = [decision.holds({**captured, name: n}) for n in near]
        period = next((p for p in _PERIODS if _is_periodic(flags, p)), None)
        if period is not None:
            remainders.append(_as_captured(name, period, captured))
    return remainders if remainders and _covers(decision, sizes, remainders, captured) else []


def _remainder_of_one(decision: SizeDecision, sizes: SizeRange, captured: Sizes) -> list[Any]:
    """Return a remainder of one symbol that implies the same decision for any sizes of the others.

    It matches the captured size, such as `A % 25 == 0` for `A * B % 25 == 0`. The list is empty if no symbol has one.
    """
    names = sorted(s.name for s in decision.condition.free_symbols)
    divisors = {int(n) for n in decision.condition.atoms(sympy.Integer) if int(n) in _PERIODS}
    for name, period in itertools.product(names, sorted(divisors)):
        remainders = [_as_captured(name, period, captured)]
        if _covers(decision, sizes, remainders, captured):
            return remainders
    return []


def _as_captured(name: str, period: int, captured: Sizes) -> Any:
    return sympy.Eq(Modulo(symbol(name), period), captured[name] % period, evaluate=False)


def _covers(decision: SizeDecision, sizes: SizeRange, conditions: Sequence[Any], captured: Sizes) -> bool:
    """Return whether these conditions imply the same decision."""
    others = other_side(decision.condition, sizes.narrowed(*conditions), captured)
    return others.is_empty or (decision.required and not others.points)


def _is_linear(relation: Any) -> bool:
    return all(term.is_number or term.is_Symbol for side in relation.args for term in side.as_coefficients_dict())


def _larger_sizes(decision: SizeDecision, sizes: SizeRange, captured: Sizes) -> list[Any]:
    """Return lower bounds that imply the same decision; an empty list if there are none.

    An example is `H >= 2` and `W >= 2` for `(H // 2) * (W // 2) != 0`.
    """
    names = sorted(s.name for s in decision.condition.free_symbols)
    for least in range(2, 10):
        lows = {name: max(sizes.bounds[name][0], min(least, captured[name])) for name in names}
        larger = [sympy.Ge(symbol(name), low, evaluate=False) for name, low in lows.items()]
        if _covers(decision, sizes, larger, captured):
            return larger
    return []


def _without_extreme(part: Any) -> Any:
    """Return `a == Min(a, b)` as `a <= b`, and the like."""
    if isinstance(part, sympy.Eq):
        for side, other in (part.args, part.args[::-1]):
            if isinstance(other, Min | Max) and side in other.args and len(other.args) == 2:
                (rest,) = (a for a in other.args if a != side)
                return (sympy.Le if isinstance(other, Min) else sympy.Ge)(side, rest, evaluate=False)
    return part


def _bounds(name: str, decision: SizeDecision, sizes: SizeRange, here: int) -> list[Any]:
    """Return the bounds of the sizes around `here` with the same decision, or their common remainder."""
    size = symbol(name, *sizes.bounds[name])
    flags = truths(decision.condition, name, *sizes.bounds[name], reach=here + 2 * _PERIODS.stop)
    near = [flag for n, flag in zip(flags.sizes, flags.flags, strict=True) if abs(n - here) < _PERIODS.stop + 5]
    periods = [p for p in _PERIODS if flags.period % p == 0 and _is_periodic(near, p)]
    period = periods[0] if flags.exact and periods else None
    if period is not None:
        if isinstance(decision.condition, sympy.Ne) and sum(near[:period]) > 1:
            return [decision.condition]
        if flags.all_like(here, period):
            return [sympy.Eq(Modulo(size, period), here % period, evaluate=False)]
    low, high = flags.around(here)
    if high is None and not flags.exact:
        high = flags.sizes[-1]
    bounds = [] if low is None else [sympy.Ge(size, low, evaluate=False)]
    return bounds if high is None else [*bounds, sympy.Le(size, high, evaluate=False)]


def _is_periodic(flags: Sequence[bool], period: int) -> bool:
    return not all(flags[:period]) and any(flags[:period]) and flags[period:] == flags[:-period]


def _condition_text(condition: Any) -> str:
    if isinstance(condition, Relational):
        return f"{condition.lhs} {condition.rel_op} {condition.rhs}"
    return str(condition)
