"""How an archive says the range of its sizes, so that the engine refuses all others.

From 0.21.8 on as two scenarios of the same content: the engine looks whether one of its scenarios still holds whenever
an input gives a symbol its value, and stops looking when only one is left, which two equal ones never are. A plain
assertion is believed and never checked; it says only what is always true, or guarded as well.

Before, as a statement: a part of one number that is longer than that outside of the range, which fails there. Its
result is 1, by which one of the tensors that an output depends on is multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sympy
from packaging.version import Version
from sympy.core.relational import Relational

from t2n_core.nnef.dims import FloorDiv, Modulo, as_dim, text
from t2n_core.nnef.ranges import SizeRange
from t2n_core.nnef.tract_versions import BOUNDED_SIZES, CHECKED_SCENARIOS

SCENARIOS: Final = ("range", "range_again")
STEP: Final = 1_048_573
"""Divisor of the quotients that are 0 or 1: a prime, so that no factor of it comes out; sizes must stay below. From
2^31 on, 0.19 and 0.20 do not end loading."""
_STRICT: Final = {sympy.Lt: 1, sympy.Gt: -1}
_SIGNS: Final = {sympy.Eq: "==", sympy.Le: "<=", sympy.Lt: "<=", sympy.Ge: ">=", sympy.Gt: ">="}


def assertions(sizes: SizeRange, version: Version) -> list[str]:
    """What stands behind `extension`, in releases that read it.

    Of sizes of at least 1 the engine proves that operators made for many elements fit, which it does not use for a
    tensor that might be empty.
    """
    if version < BOUNDED_SIZES:
        return []
    plain = [f"tract_assert {name} >= {min(1, sizes.bounds[name][0])}" for name in sizes.names]
    return [*plain, *scenarios(sizes, SCENARIOS)] if version >= CHECKED_SCENARIOS else plain


def scenarios(sizes: SizeRange, names: Sequence[str]) -> list[str]:
    """The whole range under each of these names."""
    found = [assertion(relation) for relation in sizes.relations()]
    return [f"tract_assert {name}: {one}" for name in names for one in found]


def assertion(relation: Relational) -> str:
    """A condition as the engine reads it: `(S+T) <= 20`."""
    left, right = relation.args
    return f"{text(as_dim(left + _STRICT.get(type(relation), 0)))} {_SIGNS[type(relation)]} {text(as_dim(right))}"


def excess(sizes: SizeRange) -> sympy.Expr:
    """0 for sizes in the range, at least 1 for all others below a million."""
    return sympy.Add(*(_excess(relation) for relation in sizes.relations()))


def _excess(relation: Relational) -> sympy.Expr:
    """Engines divide towards zero, after they have taken multiples of the divisor out of the dividend, also those that
    are written to keep it positive: so its constant has to be that, and less than the divisor."""
    over = sympy.expand(relation.lhs - relation.rhs) + _STRICT.get(type(relation), 0)
    if isinstance(relation, sympy.Eq):
        return over if isinstance(over, Modulo) else over * over
    if isinstance(relation, sympy.Ge | sympy.Gt):
        over = -over
    if over.as_coeff_Add()[0] > 0:
        return 1 - FloorDiv(STEP - over, STEP)
    return FloorDiv(STEP - 1 + over, STEP)


__all__ = ["SCENARIOS", "STEP", "assertion", "assertions", "excess", "scenarios"]
