"""Prediction of what tract's arithmetic of sizes can prove, and rewrites of sizes that it evaluates correctly."""

from __future__ import annotations

import functools
from typing import Any

import sympy

from t2n_core.nnef.sizes.dims import Dim, FloorDiv, Max, Min, Modulo, Size, as_dim, compile_size, has_extremes, same
from t2n_core.nnef.sizes.size_functions import greatest, least, never_negative
from t2n_core.nnef.tract.traits import TractTraits, first_release

_MOST_BENT = 4096
"""The largest sum of the integers in an expression for which its bends are searched."""
_WIDE = 1 << 20
"""Larger than any difference of sizes that is compared; from 2^31 on, loading hangs before 0.21.6."""


def is_quotient(bound: Dim) -> bool:
    """Return whether a bound contains a division, so that the engine cannot prove that it is within the axis."""
    return not isinstance(bound, int) and bound.has(FloorDiv, Modulo)


def is_seen_within(bound: Dim, size: Dim) -> bool:
    """Return whether the engine can prove that `bound` is at most `size`; it knows that all sizes are at least 1."""
    rest = sympy.expand(size - bound)
    least = 0
    for term, number in rest.as_coefficients_dict().items():
        at_least = _least(term)
        if at_least is None or (number < 0 and not term.is_number):
            return False
        least += at_least * number
    return bool(least >= 0)


def _least(term: sympy.Expr) -> int | None:
    """Return the lower bound of a size that the engine knows."""
    if term.is_number or term.is_Symbol:
        return 1
    if isinstance(term, FloorDiv) and term.args[0].is_Symbol and term.args[1].is_Integer:
        return int(1 // term.args[1])
    return None


def without_differences(size: Dim) -> Dim:
    """Return the same size without a subtracted quotient: `T - T // 2` as `(T + 1) // 2`."""
    if isinstance(size, int) or not size.has(FloorDiv):
        return size
    if size.is_Mul and any(factor.is_Mul for factor in size.args):  # factors stay in the engine's order
        return sympy.Mul(*map(without_differences, size.args), evaluate=False)
    return as_dim(sympy.gcd_terms(size).replace(lambda e: e.is_Add, lambda e: _with_quotient_sign(e, -1)))


def with_quotients_subtracted(size: sympy.Expr) -> Dim:
    """Return the same size with quotients only subtracted: `T // 2 - T` as `0 - (T + 1) // 2`.

    The engine would merge the two terms into one division of a negative number, which it rounds towards zero.
    """
    return as_dim(sympy.expand(size).replace(lambda e: e.is_Add, lambda e: _with_quotient_sign(e, 1)))


def argument_for(traits: TractTraits, argument: Any) -> Any:
    """Return an argument of an operation with sizes that this release evaluates correctly, also in lists.

    No quotient is subtracted, as in `T - (T + 1) // 2`, since each release gets that wrong somewhere: 0.20, for
    example, reads uninitialised memory in a product of a slice with such a begin.
    """
    if isinstance(argument, list | tuple):
        return type(argument)(argument_for(traits, item) for item in argument)
    if not isinstance(argument, sympy.Expr):
        return argument
    size: Dim = argument
    if has_extremes(size):
        size = without_nesting(size) if traits.has_extremes else without_extremes(as_hinges(without_differences(size)))
    size = without_differences(size)
    return merge_into_quotients(size) if traits.merges_quotients else size


def signed_parts(size: Dim) -> tuple[Dim, Dim]:
    """Return two sizes whose difference is this one, without subtractions in them that could be negative.

    `(B - H) // 8` is `(B + 7 * H) // 8` minus `H`.
    """
    added, subtrahend = sympy.Integer(0), sympy.Integer(0)
    for term, n in sympy.expand(size).as_coefficients_dict().items():
        minuend, rest = term, sympy.Integer(0)
        if isinstance(term, FloorDiv) and term.args[1].is_Integer and not never_negative(term.args[0]):
            dividend, divisor = term.args
            plus, rest = map(sympy.sympify, signed_parts(as_dim(dividend)))
            minuend = FloorDiv(sympy.expand(plus + (divisor - 1) * rest), divisor)
        more, less = (minuend, rest) if n > 0 else (rest, minuend)
        added, subtrahend = added + abs(n) * more, subtrahend + abs(n) * less
    return as_dim(added), as_dim(subtrahend)


def merge_into_quotients(size: Dim) -> Dim:
    """Return a size with the summands of a quotient moved into it, as the engine does.

    `3 * (T // 2) + 3 * T` becomes `3 * (3 * T // 2)`.

    The engine adds `T` to `T // 2` that way before it multiplies, and does not see that the sum of the products is the
    same.
    """
    if isinstance(size, int) or not size.has(FloorDiv):
        return size
    plain = sympy.expand(size)
    merged = plain.replace(lambda e: e.is_Add, _merge_sum)
    return size if merged == plain else as_dim(merged)


def _merge_sum(total: sympy.Expr) -> sympy.Expr:
    terms = total.as_coefficients_dict()
    quotients = [term for term in terms if isinstance(term, FloorDiv) and term.args[1].is_Integer]
    if len(quotients) != 1 or terms[quotients[0]] <= 1:
        return total
    (quotient,), number = quotients, terms[quotients[0]]
    inside = {term: n / number for term, n in terms.items() if term != quotient and not term.is_number}
    if not inside or not all(n.is_Integer and n > 0 for n in inside.values()):
        return total
    dividend, divisor = quotient.args
    more = divisor * sympy.Add(*(n * term for term, n in inside.items()))
    return number * FloorDiv(sympy.expand(dividend + more), divisor) + terms.get(sympy.Integer(1), 0)


def _is_compound(dividend: sympy.Expr) -> bool:
    """Return whether a comparison, written as a quotient, is more than one of two plain sizes.

    It is if it contains another comparison, or compares sizes such as `2 * H - W`. Releases without maxima simplify
    such quotients wrongly, or never finish loading.
    """
    dividend = sympy.expand(dividend.replace(Modulo, _of_quotient))
    if any(q.args[1] == _WIDE for q in dividend.atoms(FloorDiv)):
        return True
    terms = {term: n for term, n in dividend.as_coefficients_dict().items() if not term.is_number}
    plain = all(term.is_Symbol and abs(n) == 1 for term, n in terms.items())
    return not plain and any(n < 0 for n in terms.values())


def _of_quotient(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
    """Return a remainder written with a quotient: `-T % 4` as `4 * ((T + 3) // 4) - T`."""
    return a + b * FloorDiv(b - 1 - a, b) if a.could_extract_minus_sign() else a - b * FloorDiv(a, b)


def without_nesting(size: Dim) -> Dim:
    """Return the same size without a minimum of a maximum, or the reverse.

    `Min(Max(T - 2, 0), 5)` becomes `Max(T - 2, 0) - Max(T - 7, 0)`.

    Releases before 0.23.0 evaluate the inner one alone, the others never finish loading if there are several.
    """
    if not _is_nested(size):
        return size
    plain = as_hinges(size)
    return sympy.sympify(plain).replace(lambda e: isinstance(e, Max | Min), _apart) if _is_nested(plain) else plain


def _is_nested(size: Dim) -> bool:
    if isinstance(size, int):
        return False
    return any(argument.has(Max, Min) for extreme in size.atoms(Max, Min) for argument in extreme.args)


def _apart(extreme: sympy.Expr) -> sympy.Expr:
    """Return `Min(Max(a, b), c)` as `Max(a, b) + c - Max(a, b, c)`."""
    other = Min if isinstance(extreme, Max) else Max
    inner = [a for a in extreme.args if isinstance(a, other)]
    if not inner or len(extreme.args) != 2:
        return extreme
    (rest,) = (a for a in extreme.args if a is not inner[0])
    return inner[0] + rest - other(*inner[0].args, rest)


@functools.lru_cache(maxsize=1024)
def as_hinges(size: Dim) -> Dim:
    """Return a size with its extremes as sums of `Max(T - c, 0)`, one for each bend.

    An extreme of several symbols, or of several different quotients, is returned unchanged.
    """
    if isinstance(size, int):
        return size
    result = _of_hinges(size)
    if result is not None:
        return result
    outer = _outermost(size)
    return as_dim(size.xreplace({extreme: hinges for extreme in outer if (hinges := _of_hinges(extreme)) is not None}))


def _outermost(size: sympy.Expr) -> list[sympy.Expr]:
    if isinstance(size, Max | Min):
        return [size]
    return [extreme for argument in size.args for extreme in _outermost(argument)]


def _of_hinges(size: sympy.Expr) -> Dim | None:
    """Return a size as a sum of hinges; None if it has more bends than operands."""
    quotients = size.atoms(FloorDiv, Modulo)
    outer = [q for q in quotients if not any(q is not other and other.has(q) for other in quotients)]
    if len(outer) > 1 or (outer and outer[0].has(Max, Min)) or size.has(sympy.Pow):
        return None
    atom = outer[0] if outer else next(iter(size.free_symbols))
    name = Size("n", least(atom) or 0, greatest(atom))
    inner = size.xreplace({atom: name})
    numbers = sum(abs(int(n)) for n in inner.atoms(sympy.Integer))
    if inner.free_symbols != {name} or name.low < 0 or numbers > _MOST_BENT:
        return None
    function = compile_size(inner)
    last = 2 * numbers + name.low + 8
    values = [function({"n": n}) for n in range(name.low, last if name.high is None else min(last, name.high) + 2)]
    bends = {i: bend for i in range(1, len(values) - 1) if (bend := values[i + 1] - 2 * values[i] + values[i - 1])}
    if len(bends) > sum(len(extreme.args) for extreme in size.atoms(Max, Min)):
        return None
    hinges = [bend * Max(atom - (name.low + i), 0) for i, bend in bends.items()]
    total = as_dim(values[0] + (values[1] - values[0]) * (atom - name.low) + sympy.Add(*hinges))
    return total if same(total, size) else None


def without_extremes(size: Dim) -> Dim:
    """Return the same size with quotients instead of maxima and minima: `Min(T, c)` as `T - (T - c) * [T >= c]`.

    `[a >= b]` is `(a - b + M) // M`, which is correct as long as both differ by less than M. The dividend must not
    decrease with a size, which all releases simplify wrongly, so the difference that grows is used.

    Raises ValueError if releases without maxima would compute the result wrongly: for one comparison inside
    another, and for comparisons of some differences.
    """
    if isinstance(size, int) or not has_extremes(size):
        return size
    if any(inner is not outer for outer in size.atoms(Max, Min) for inner in outer.atoms(Max, Min)):
        raise _not_exact(size)
    return as_dim(size.replace(lambda e: isinstance(e, Max | Min), _of_quotients))


def _of_quotients(extreme: sympy.Expr) -> sympy.Expr:
    extremum, *rest = extreme.args
    for other in rest:
        growing, falling = (extremum, other) if _grows(sympy.expand(extremum - other)) else (other, extremum)
        more = sympy.expand((growing - falling).replace(Modulo, _of_quotient))
        more = sympy.sympify(without_differences(more))
        if _is_compound(more):
            raise _not_exact(extreme)
        excess = more * _quotient(more + _WIDE)  # of the growing operand over the other, never negative
        extremum = falling + excess if isinstance(extreme, Max) else growing - excess
    return extremum


def _not_exact(size: sympy.Expr) -> ValueError:
    first = first_release("has_extremes")
    return ValueError(f"{size} cannot be written so that this release computes it correctly; {first} can")


def _grows(difference: sympy.Expr) -> bool:
    """Return whether a difference of sizes grows with them; if two sizes cancel, with most of its terms."""
    rate = _rate(difference)
    if rate:
        return bool(rate > 0)
    numbers = [number for term, number in difference.as_coefficients_dict().items() if not term.is_number]
    return sum(bool(number > 0) for number in numbers) >= sum(bool(number < 0) for number in numbers)


def _rate(size: sympy.Expr) -> sympy.Expr:
    """Return by how much a size grows if all symbols grow by 1, on average; a product of symbols counts as one."""
    if size.is_number or isinstance(size, Modulo):
        return sympy.Integer(0)
    if isinstance(size, sympy.Add):
        return sympy.Add(*map(_rate, size.args))
    if isinstance(size, FloorDiv) and size.args[1].is_number:
        return _rate(size.args[0]) / size.args[1]
    number, term = size.as_coeff_Mul()
    return number if term is size or number == 1 else number * _rate(term)


def _quotient(dividend: sympy.Expr) -> sympy.Expr:
    return sympy.Function.__new__(FloorDiv, dividend, sympy.Integer(_WIDE), evaluate=False)


def _with_quotient_sign(total: sympy.Expr, sign: int) -> sympy.Expr:
    """Return a sum in which the quotient with this sign, and the rest of the sum, are one quotient of the other sign.

    n * (inner // d + rest) is -n * ((d - 1 - inner - d * rest) // d) for an integer `rest`. The sum is returned
    unchanged if the new dividend would decrease as a size grows.
    """
    terms = sympy.expand(total).as_coefficients_dict()
    for term, number in terms.items():
        if number * sign > 0 and isinstance(term, FloorDiv) and term.args[1].is_Integer and term.args[1] > 0:
            others = {other: n / number for other, n in terms.items() if other != term}
            inner, divisor = term.args
            over = sympy.expand(divisor - 1 - inner - divisor * sympy.Add(*(n * other for other, n in others.items())))
            grows = all(n > 0 or part.is_number for part, n in over.as_coefficients_dict().items())
            if grows and all(n.is_Integer for n in others.values()):
                return -number * FloorDiv(over, divisor)
    return total
