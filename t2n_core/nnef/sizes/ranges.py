"""The sizes that an archive is valid for: bounds of each symbol, and conditions that relate sizes.

SizeRange({"T": (1, 16)}).narrowed(Eq(Modulo(T, 2), 0))        1 <= T <= 16, T % 2 == 0
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import sympy
from sympy.core.relational import Relational
from sympy.printing.str import StrPrinter

from t2n_core.nnef.sizes.dims import Modulo, compile_size, symbol

LEAST: Final = 1
"""The smallest size of a symbol without a declared bound: PyTorch itself assumes sizes of 2 or more."""
Bounds: TypeAlias = tuple[int, int | None]
_BOUNDS: Final = (sympy.Eq, sympy.Le, sympy.Lt, sympy.Ge, sympy.Gt)
CONDITIONS: Final = (*_BOUNDS, sympy.Ne)
"""The kinds of conditions of a range."""
_NEARBY: Final = 4
_PERIOD: Final = 64
"""Sizes that violate only one condition are searched among the smallest, around bounds, and a divisor apart."""


class EmptyRangeError(ValueError):
    """Raised when no size is left in a range."""


@dataclass(frozen=True, slots=True)
class SizeRange:
    """Sizes of the dynamic axes that an archive is valid for."""

    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    """Symbol -> smallest and largest size; None for a size without an upper bound."""
    conditions: tuple[Relational, ...] = ()
    """Relations other than bounds, such as `T <= S` and `Eq(Modulo(T, 2), 0)`. Symbols are compared by name."""
    scenarios: Mapping[str, tuple[Relational, ...]] = field(default_factory=dict)
    """Name -> conditions. If there are any scenarios, all conditions of at least one of them must hold as well."""

    def __post_init__(self) -> None:
        for name, (low, high) in self.bounds.items():
            if low < 0 or (high is not None and high < low):
                raise EmptyRangeError(f"no size is between {low} and {high}, the bounds of {name}")
        for condition in (*self.conditions, *itertools.chain.from_iterable(self.scenarios.values())):
            if not isinstance(condition, CONDITIONS):
                raise ValueError(f"{condition} is not a condition that an engine can check")
            unknown = {s.name for s in condition.free_symbols} - self.bounds.keys()
            if unknown:
                raise ValueError(f"{_text(condition)} names {', '.join(sorted(unknown))}, which is not a dynamic axis")

    @classmethod
    def of(cls, names: Iterable[str]) -> SizeRange:
        """Return every size from 1 on."""
        return cls(dict.fromkeys(names, (LEAST, None)))

    @property
    def names(self) -> list[str]:
        return sorted(self.bounds)

    @property
    def unbounded(self) -> bool:
        """Return whether every size from 0 on is in the range, so that there is nothing to guard."""
        return (
            not self.conditions and not self.scenarios and all(bounds == (0, None) for bounds in self.bounds.values())
        )

    @property
    def restricted(self) -> bool:
        """Return whether the range excludes more than the size 0."""
        return bool(self.conditions or self.scenarios) or any(
            low > LEAST or high is not None for low, high in self.bounds.values()
        )

    def relations(self) -> list[Relational]:
        """Return bounds and conditions alike, except always true ones such as `T >= 0`."""
        relations = []
        for name, (low, high) in self.bounds.items():
            size = symbol(name)
            if low > 0:
                relations.append(sympy.Ge(size, low, evaluate=False))
            if high is not None:
                relations.append(sympy.Le(size, high, evaluate=False))
        return [*relations, *self.conditions]

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Return whether these sizes, of all symbols, are in the range."""
        return not self.broken(sizes)

    def broken(self, sizes: Mapping[str, int]) -> list[str]:
        """Return the bounds and conditions that these sizes violate."""
        violations = [_text(relation) for relation in self.relations() if not relation_holds(relation, sizes)]
        return violations if self._has_scenario(sizes) else [*violations, self._scenarios_text()]

    def _has_scenario(self, sizes: Mapping[str, int]) -> bool:
        each = self.scenarios.values()
        return not each or any(all(relation_holds(condition, sizes) for condition in conditions) for conditions in each)

    def _scenarios_text(self) -> str:
        return " or ".join(" and ".join(map(_text, conditions)) for conditions in self.scenarios.values())

    def narrowed(self, *conditions: Any, **bounds: Bounds) -> SizeRange:
        """Return the part of the range in which these conditions and bounds hold too; a condition may be a bound.

        Raises EmptyRangeError, a ValueError, if nothing is left, and ValueError for anything but a condition on
        these symbols.
        """
        narrower, more = dict(self.bounds), list(self.conditions)
        pending: list[tuple[str, Bounds]] = list(bounds.items())
        for condition in conditions:
            condition = _simpler_remainder(condition)
            if condition == sympy.true:
                continue
            if condition == sympy.false:
                raise EmptyRangeError("no size fulfils this condition")
            bound = _bound_of(condition)
            if bound is not None and bound[0] in narrower:
                pending.append(bound)
            elif condition not in more:
                more.append(condition)
        for name, (low, high) in pending:
            known_low, known_high = narrower[name]
            highs = [limit for limit in (known_high, high) if limit is not None]
            narrower[name] = max(known_low, low), min(highs, default=None)
        return SizeRange(narrower, tuple(more), self.scenarios)

    def just_outside(self, base: Mapping[str, int]) -> list[dict[str, int]]:
        """Return sizes that violate exactly one bound or condition, as near as possible to `base`, which is inside."""
        relations = self.relations()
        violating: list[dict[str, int]] = []
        for relation in relations:
            others = [other for other in relations if other is not relation]
            for sizes in self._near(relation, base):
                alone = not relation_holds(relation, sizes) and all(relation_holds(other, sizes) for other in others)
                if alone and self._has_scenario(sizes):
                    violating += [sizes] if sizes not in violating else []
                    break
        for relation in itertools.chain.from_iterable(self.scenarios.values()):
            near = (sizes for sizes in self._near(relation, base) if not self._has_scenario(sizes))
            outside = next(
                (sizes for sizes in near if all(relation_holds(condition, sizes) for condition in relations)), None
            )
            if outside is not None and outside not in violating:
                violating.append(outside)
        return violating

    def _near(self, relation: Relational, base: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """Yield candidate sizes, those nearest to `base` first."""
        names = sorted(s.name for s in relation.free_symbols)
        bounds = [bound for name in names for bound in self.bounds[name] if bound is not None]
        turns = [turn for name in names for turn in _turns(relation, name, base)]
        numbers = {int(n) for condition in self.relations() for n in condition.atoms(sympy.Integer) if 0 < n <= _PERIOD}
        steps = {0, 1, *numbers}
        places = {*range(_NEARBY), *bounds, *turns, *(base[name] for name in names)}
        values = sorted({max(0, point + sign * step) for point in places for step in steps for sign in (-1, 1)})

        def distance(sizes: dict[str, int]) -> int:
            return sum(abs(base[name] - size) for name, size in sizes.items())

        each = [{name: value} for name in names for value in values]
        pairs = [dict(zip(names, two, strict=True)) for two in itertools.product(values, repeat=2) if len(names) == 2]
        for chosen in [*sorted(each, key=distance), *sorted(pairs, key=distance)]:
            yield {**base, **chosen}

    def __str__(self) -> str:
        parts = [_bounds_text(name, *self.bounds[name]) for name in self.names]
        parts += [_text(condition) for condition in self.conditions]
        return ", ".join([*parts, self._scenarios_text()] if self.scenarios else parts)


def relation_holds(relation: Relational, sizes: Mapping[str, int]) -> bool:
    """Return whether a relation holds at these sizes; False where it divides by 0."""
    try:
        return _test_of(relation)(sizes)
    except ZeroDivisionError:
        return False


@functools.lru_cache(maxsize=4096)
def _test_of(relation: Relational) -> Callable[[Mapping[str, int]], bool]:
    """Return a relation as a function of the sizes by name."""
    compare = _COMPARED[relation.rel_op]
    try:
        left, right = map(compile_size, relation.args)
    except ValueError:  # a function of PyTorch's that is not supported here, such as a square root
        symbols = sorted(relation.free_symbols, key=str)
        functions = {function.func.__name__: function.func for function in relation.atoms(sympy.Function)}
        both = sympy.lambdify(symbols, relation.args, modules=[functions, "math"])
        # an undecided relation counts as true
        return lambda sizes: bool(compare(*both(*(sizes[symbol.name] for symbol in symbols))) != sympy.false)
    return lambda sizes: bool(compare(left(sizes), right(sizes)))


_COMPARED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _turns(relation: Relational, name: str, base: Mapping[str, int]) -> list[int]:
    """Return the size of one symbol at which a linear relation changes, with the others as in `base`."""
    others = {s: base[s.name] for s in relation.free_symbols if s.name != name}
    difference = sympy.expand((relation.lhs - relation.rhs).subs(others))
    (size, *rest) = difference.free_symbols or (None,)
    if rest or size is None or not difference.is_polynomial(size) or sympy.degree(difference, size) != 1:
        return []
    zero = -difference.coeff(size, 0) / difference.coeff(size, 1)
    return [int(sympy.floor(zero)), int(sympy.ceiling(zero))]


def _bounds_text(name: str, low: int, high: int | None) -> str:
    if high is None:
        return f"{name} >= {low}"
    return f"{name} == {low}" if low == high else f"{low} <= {name} <= {high}"


def _bound_of(condition: Relational) -> tuple[str, Bounds] | None:
    """Return a linear condition as the equivalent bounds of its one symbol."""
    if not isinstance(condition, _BOUNDS) or len(condition.free_symbols) != 1:
        return None
    (size,) = condition.free_symbols
    difference = sympy.expand(condition.lhs - condition.rhs)
    if not difference.is_polynomial(size) or sympy.degree(difference, size) != 1:
        return None
    factor, zero = difference.coeff(size, 1), -difference.coeff(size, 0) / difference.coeff(size, 1)
    if isinstance(condition, sympy.Eq):
        if not zero.is_Integer:
            raise EmptyRangeError(f"no size fulfils {_text(condition)}")
        return size.name, (max(int(zero), 0), int(zero))
    upper = isinstance(condition, sympy.Le | sympy.Lt) == bool(factor > 0)
    if isinstance(condition, sympy.Lt | sympy.Gt) and zero.is_Integer:
        zero += -1 if upper else 1
    if upper:
        return size.name, (0, int(sympy.floor(zero)))
    return size.name, (max(0, int(sympy.ceiling(zero))), None)


def _simpler_remainder(condition: Any) -> Any:
    """Simplify an equation with a remainder.

    Return `T % 5 != 0` for `2 * T % 5 != 0`, and one comparison for `T % 4 != 0`, `T % 4 != 3` and `T % 2 != 1`, since
    `!=` is two scenarios in general.
    """
    if not isinstance(condition, sympy.Eq | sympy.Ne) or not isinstance(condition.lhs, Modulo):
        return condition
    (over, divisor), other = condition.lhs.args, condition.rhs
    if not divisor.is_Integer or divisor < 2 or not other.is_Integer:
        return condition
    over, divisor, other = _of_one_symbol(over, int(divisor), int(other))
    remainder, equal = Modulo(over, divisor), isinstance(condition, sympy.Eq)
    if not isinstance(remainder, Modulo):
        return condition
    if equal or 0 < other < divisor - 1:
        return condition.func(remainder, other, evaluate=False)
    if divisor == 2:
        return sympy.Eq(remainder, 1 - other, evaluate=False)
    if other == 0:
        return sympy.Ge(remainder, 1, evaluate=False)
    return sympy.Le(remainder, other - 1, evaluate=False) if other == divisor - 1 else condition


def _of_one_symbol(over: Any, divisor: int, other: int) -> tuple[Any, int, int]:
    """Return (T, 5, 4) for `2 * T % 5 == 3`: the same sizes fulfil `T % 5 == 4`. Other equations stay as they are."""
    terms = sympy.expand(over).as_coefficients_dict()
    constant = int(terms.pop(sympy.S.One, sympy.S.Zero))
    if len(terms) != 1 or not 0 <= other < divisor:
        return over, divisor, other
    ((size, factor),) = terms.items()
    if not size.is_Symbol or not factor.is_Integer:
        return over, divisor, other
    common = math.gcd(int(factor), divisor)
    left = (other - constant) % divisor
    if left % common or divisor == common:
        return over, divisor, other  # no size or every size fulfils it
    reduced = divisor // common
    return size, reduced, left // common * pow(int(factor) // common, -1, reduced) % reduced


class _Printer(StrPrinter):  # type: ignore[misc]
    """Printer of sizes in Python's syntax."""

    def _print_FloorDiv(self, e: Any) -> str:  # noqa: N802
        return f"{self._factor(e.args[0])} // {self._factor(e.args[1])}"

    def _print_Modulo(self, e: Any) -> str:  # noqa: N802
        return f"{self._factor(e.args[0])} % {self._factor(e.args[1])}"

    def _print_Relational(self, e: Any) -> str:  # noqa: N802
        return f"{self._print(e.lhs)} {e.rel_op} {self._print(e.rhs)}"

    def _factor(self, e: Any) -> str:
        return str(self._print(e)) if e.is_Symbol or e.is_Integer else f"({self._print(e)})"


def _text(condition: Relational) -> str:
    return str(_Printer().doprint(condition))


def ranges_text(sizes: Sequence[Mapping[str, int]]) -> str:
    """Return sizes as messages show them: `T = 20, S = 3; T = 21, S = 3`."""
    return "; ".join(", ".join(f"{name} = {size}" for name, size in assignment.items()) for assignment in sizes)
