"""Declarations of the size range of an archive, so that the engine refuses all other sizes.

From 0.21.8 on the range is written as two scenarios with the same conditions. Whenever an input defines the value of a
symbol, the engine checks that one of its scenarios still holds. It stops checking when only one is left, which never
happens with two equal ones; with one symbol, which is known when it is first checked, one is enough.

Before, and where scenarios would cost time in each run or in loading, the range is written as an operation: it slices a
tensor of one element, at a place beyond it at sizes out of the range, and so fails there. Its result is -0.0, and is
added to a tensor that an output depends on. A stream has no sizes, so what may be one keeps scenarios.

A plain assertion is trusted and never checked, so it states only what always holds or is guarded.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import sympy
from sympy.core.relational import Relational

from t2n_core.nnef.sizes.dims import FloorDiv, Max, Min, Modulo, as_dim
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.tract.sizes.printer import size_text
from t2n_core.nnef.tract.traits import TractTraits

SCENARIOS: Final = ("range", "range_again")
STEPS: Final = (16_777_213, 2_147_483_629)
"""Divisors of the quotients that are 0 or 1: primes, so that they share no factor with the dividend, and larger than
the integers of the condition. From 2^31 on, 0.19 and 0.20 never finish loading."""
_LARGEST_FACTOR: Final = 64
"""Times a size of some millions this is below 2^31."""
_STRICT: Final = {sympy.Lt: 1, sympy.Gt: -1}
_SIGNS: Final = {sympy.Eq: "==", sympy.Le: "<=", sympy.Lt: "<=", sympy.Ge: ">=", sympy.Gt: ">="}


def assertions(
    sizes: SizeRange, traits: TractTraits, scenario_conditions: Sequence[Relational] = (), by_statement: bool = False
) -> list[str]:
    """Return the `extension` lines that state a range of sizes, for releases that read them.

    They also state the values of the graph's own symbols. If a statement guards the range, only the user's
    scenarios are stated.

    `T >= 1` enables the engine's vectorised operators, which it does not use for a tensor that might be empty.
    """
    if not traits.reads_size_bounds:
        return []
    plain = [f"tract_assert {name} >= {min(1, sizes.bounds[name][0])}" for name in sizes.names]
    if not traits.checks_scenarios:
        return plain
    if not by_statement:
        return [*plain, *_scenarios(sizes, sizes.relations(), scenario_conditions)]
    return [*plain, *_guarded_bounds(sizes), *_scenarios(sizes, [], scenario_conditions)]


def _guarded_bounds(sizes: SizeRange) -> Iterator[str]:
    """Yield plain assertions of the linear inequalities of a range that a statement guards, other than `T >= 1`.

    Without them the engine cannot prove that a difference of sizes is positive. An equality would let it compute the
    guard at load, as if it held, and of a maximum it seeks the sign without end.
    """
    for relation in sizes.relations():
        difference = (relation.lhs - relation.rhs).as_poly(*relation.free_symbols)
        is_linear = difference is not None and difference.total_degree() == 1
        if is_linear and isinstance(relation, sympy.Ge | sympy.Gt | sympy.Le | sympy.Lt):
            text = assertion(relation)
            if not re.fullmatch(r"\w+ >= [01]", text):
                yield f"tract_assert {text}"


def _scenarios(sizes: SizeRange, relations: Sequence[Relational], equations: Sequence[Relational]) -> Iterator[str]:
    """Yield the lines of the range under one or two names, or under the user's scenarios and one more for each.

    No engine reads `a != b`, which becomes two scenarios, `a > b` and `a < b`. `T >= 1` is written as `T > 0`: to
    compare a size that it does not know yet with 1, the engine simplifies a difference.
    """
    plain = [relation for relation in relations if not isinstance(relation, sympy.Ne)]
    apart = [_sides(relation) for relation in relations if isinstance(relation, sympy.Ne)]
    several = len(sizes.names) + len(equations) > 1
    names = [name for scenario in sizes.scenarios for name in (scenario, f"{scenario}_again")] or SCENARIOS[
        : 1 + several
    ]
    for name in names:
        conditions = sizes.scenarios.get(name.removesuffix("_again"), ())
        for number, sides in enumerate(itertools.product(*apart)):
            stated = (exact for constraint in (*conditions, *plain, *sides) for exact in without_quotients(constraint))
            for relation in (*equations, *stated):
                text = re.sub(r"^(\w+) >= 1$", r"\1 > 0", assertion(relation))
                yield f"tract_assert {name}{f'_{number}' if apart else ''}: {text}"


def _sides(relation: Relational) -> tuple[Relational, Relational]:
    """Return `a > b` and `a < b` for `a != b`."""
    left, right = relation.args
    return sympy.Ge(left, right + 1, evaluate=False), sympy.Le(left, right - 1, evaluate=False)


def without_quotients(relation: Relational) -> Iterator[Relational]:
    """Yield relations that are together equivalent, without a quotient in a sum: `2*T <= S` for `S // 2 - T >= 0`.

    Engines compute `S / 2 - T` as `(S - 2*T) / 2`, which they round towards zero: -1 counts as 0.
    """
    over = sympy.expand(relation.lhs - relation.rhs)
    quotients = [(term, number) for term, number in over.as_coefficients_dict().items() if isinstance(term, FloorDiv)]
    # the engine substitutes a symbol by what it is equal to
    is_definition = isinstance(relation, sympy.Eq) and relation.lhs.is_Symbol
    if is_definition or len(quotients) != 1 or abs(quotients[0][1]) != 1 or not quotients[0][0].args[1].is_Integer:
        yield relation
        return
    quotient, sign = quotients[0]
    dividend, divisor = quotient.args
    rest = sign * (over - sign * quotient)
    strict = _STRICT.get(type(relation), 0) * sign
    at_least = isinstance(relation, sympy.Ge | sympy.Gt) == (sign > 0)
    if at_least or isinstance(relation, sympy.Eq):
        yield from without_quotients(_by_sides(sympy.Ge, dividend + divisor * (rest + strict)))
    if not at_least or isinstance(relation, sympy.Eq):
        yield from without_quotients(_by_sides(sympy.Le, dividend + divisor * (rest + strict - 1) + 1))


def _by_sides(kind: type[Relational], over: sympy.Expr) -> Relational:
    """Return the relation of an expression to 0, with the subtracted terms on its other side."""
    terms = sympy.Add.make_args(sympy.expand(over))
    less = [term for term in terms if term.as_coeff_Mul()[0] < 0]
    return kind(sympy.Add(*(term for term in terms if term not in less)), -sympy.Add(*less), evaluate=False)


def assertion(relation: Relational) -> str:
    """Return a condition as the engine reads it: `(S+T) <= 20`.

    It substitutes the right side of `T == …` for T, endlessly if that contains T as well. 0.21 reads no sum of three
    terms. A multiple is written as `((T+3)/4) <= (T/4)`: with a remainder 0.21 loads a U-Net in ten times the time.
    """
    if isinstance(relation, sympy.Eq) and (dividend_and_divisor := _multiple(relation)) is not None:
        dividend, divisor = dividend_and_divisor
        relation = sympy.Le(FloorDiv(dividend + divisor - 1, divisor), FloorDiv(dividend, divisor), evaluate=False)
    left, right = relation.args
    if isinstance(relation, sympy.Eq) and left.free_symbols & right.free_symbols:
        left, right = sympy.expand(left - right), sympy.Integer(0)
    over, under = (size_text(as_dim(side), of_two=True) for side in (left + _STRICT.get(type(relation), 0), right))
    return f"{over} {_SIGNS[type(relation)]} {under}"


def _multiple(relation: sympy.Eq) -> tuple[sympy.Expr, sympy.Expr] | None:
    """Return a dividend and a divisor if the relation states that the remainder of their division is 0.

    Engines round quotients towards zero, so the dividend is a sum of symbols, none of them subtracted.
    """
    over = sympy.expand(relation.lhs - relation.rhs)
    for term in over.atoms(FloorDiv, Modulo):
        dividend, divisor = term.args
        remainder = term if isinstance(term, Modulo) else dividend - divisor * term
        is_positive = all(key.is_Symbol and times > 0 for key, times in dividend.as_coefficients_dict().items())
        if is_positive and divisor.is_Integer and divisor > 0 and sympy.expand(over - remainder) == 0:
            return dividend, divisor
    return None


def condition(text: str, symbols: Mapping[str, sympy.Symbol]) -> Relational:
    """Parse a condition such as `T <= 2 * S` on these symbols. Raises ValueError if it is not one."""
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as wrong:
        raise ValueError(f"`{text}` is not a condition") from wrong
    if not isinstance(parsed, ast.Compare) or len(parsed.ops) != 1 or type(parsed.ops[0]) not in _COMPARED:
        raise ValueError(f"`{text}` is not one comparison by <=, >=, <, > or ==")
    left, right = _size(parsed.left, symbols), _size(parsed.comparators[0], symbols)
    return _COMPARED[type(parsed.ops[0])](left, right, evaluate=False)


def _size(parsed: ast.expr, symbols: Mapping[str, sympy.Symbol]) -> sympy.Expr:
    match parsed:
        case ast.Constant(value=int(number)):
            return sympy.Integer(number)
        case ast.Name(id=name) if name in symbols:
            return symbols[name]
        case ast.Name(id=name):
            raise ValueError(f"{name} is not a dynamic axis, these are {', '.join(symbols) or 'none'}")
        case ast.UnaryOp(op=ast.USub(), operand=of):
            return -_size(of, symbols)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMPUTED:
            return _COMPUTED[type(op)](_size(left, symbols), _size(right, symbols))
        case ast.Call(func=ast.Name(id=name), args=args) if name in ("min", "max") and args:
            return (Min if name == "min" else Max)(*(_size(argument, symbols) for argument in args))
    raise ValueError(f"`{ast.unparse(parsed)}` is not a size")


_COMPARED: Final[dict[type, Any]] = {
    ast.Eq: sympy.Eq,
    ast.LtE: sympy.Le,
    ast.Lt: sympy.Lt,
    ast.GtE: sympy.Ge,
    ast.Gt: sympy.Gt,
}
_COMPUTED: Final[dict[type, Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: FloorDiv,
    ast.FloorDiv: FloorDiv,
    ast.Mod: Modulo,
}


def excesses(sizes: SizeRange, traits: TractTraits) -> list[sympy.Expr]:
    """Return expressions whose largest is 0 for sizes in the range, and at least 1 for all others below some millions.

    For releases without scenarios, which add them up, none is below 0. Where the engine computes with them in 32 bits,
    none is a square, of which those bits may be 0. Raises ValueError for a condition with an integer beyond 2^30.
    """
    exact = (exact_relation for relation in sizes.relations() for exact_relation in without_quotients(relation))
    parts = (part for relation in exact for part in _parts(relation))
    if not traits.checks_scenarios:
        return [_excess(part, 2) for part in parts]
    return [sympy.Integer(0), *(_least_excess(side) for part in parts for side in _of_equality(part))]


def _least_excess(relation: Relational) -> sympy.Expr:
    """Return an expression that is at most 0 where a relation holds, at least 1 elsewhere, in few operations.

    Each operation is five nodes of the graph that the engine loads. A difference fits 32 bits if its factors are small.
    """
    quotient, difference = _excess(relation, 1), _outside(relation, 1)
    factors = [(term, number) for term, number in difference.as_coefficients_dict().items() if term != 1]
    is_short = all(term.is_Symbol and abs(number) <= _LARGEST_FACTOR for term, number in factors)
    return difference if is_short else quotient


def _of_equality(relation: Relational) -> Iterator[Relational]:
    """Yield `a <= b` and `a >= b` for `a == b`, or what is no equality of sums of symbols."""
    over = sympy.expand(relation.lhs - relation.rhs)
    if not isinstance(relation, sympy.Eq) or over.has(Modulo, FloorDiv):
        yield relation
    else:
        yield from (kind(over, 0, evaluate=False) for kind in (sympy.Le, sympy.Ge))


def _parts(relation: Relational) -> Iterator[Relational]:
    """Yield relations that are together equivalent, without extremes: `S <= 9` and `T <= 9` for `max(S, T) <= 9`."""
    if isinstance(relation, sympy.Ne):
        yield sympy.Ge((relation.lhs - relation.rhs) ** 2, 1, evaluate=False)
        return
    over = sympy.expand(relation.lhs - relation.rhs)
    if isinstance(relation, sympy.Ge | sympy.Gt):
        over = -over
    for term, number in over.as_coefficients_dict().items():
        if isinstance(term, Max if number > 0 else Min) and not isinstance(relation, sympy.Eq):
            kind = sympy.Lt if isinstance(relation, sympy.Lt | sympy.Gt) else sympy.Le
            for argument in term.args:
                yield from _parts(kind(over + number * (argument - term), 0, evaluate=False))
            return
    yield relation


def _excess(relation: Relational, times: int) -> sympy.Expr:
    """Return an expression that is 0 where a relation holds, at least 1 elsewhere.

    Engines divide towards zero, after they have moved multiples of the divisor out of the dividend, even multiples that
    keep it positive: so its constant has to keep it positive, and be less than the divisor. 0.21.5 and 0.21.6 solve a
    plain `T - S` in a dividend for T, so twice the sizes are compared there.
    """
    over = sympy.expand(relation.lhs - relation.rhs) + _STRICT.get(type(relation), 0)
    if isinstance(relation, sympy.Eq):
        return over if isinstance(over, Modulo) else over * over
    outside = _outside(relation, times)
    number = outside.as_coeff_Add()[0]
    step = next((step for step in STEPS if abs(number) < step), None)
    if step is None:
        raise ValueError(f"{relation} has an integer that is too large")
    if number > 0:
        return 1 - FloorDiv(step - outside, step)
    return FloorDiv(step - 1 + outside, step)


def _outside(relation: Relational, times: int) -> sympy.Expr:
    """Return an expression that is at most 0 where an inequality holds, at least 1 elsewhere."""
    over = sympy.expand(relation.lhs - relation.rhs) + _STRICT.get(type(relation), 0)
    sign = -times if isinstance(relation, sympy.Ge | sympy.Gt) else times
    return sympy.expand(sign * over) - (times - 1)
