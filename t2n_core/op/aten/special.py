"""Special functions. They are computed in float64, which every version of tract has, and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op import formulas
from t2n_core.op.promote import tensor, wide_input
from t2n_core.op.registry import op

_LANCZOS = (0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
            12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7)  # fmt: skip
"""Coefficients for g = 7, n = 9 (P. Godfrey, "Computation of the convergent Lanczos complex Gamma approximation")."""
_BERNOULLI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 5 / 660, -691 / 32760)
"""B(2k) / 2k of the asymptotic series of digamma (Abramowitz and Stegun, 6.3.18)."""


def _turns(g: Emitter, x: Value) -> Value:
    """Return pi times the fraction of x: the angle of sin(pi x) up to its sign, exact near integers."""
    return g.mul(g.sub(x, formulas.round_even(g, x)), math.pi)


def _lgamma_positive(g: Emitter, x: Value) -> Value:
    """log(gamma(x)) for x >= 0.5 by Lanczos' series."""
    z = g.sub(x, 1.0)
    series: Value | float = _LANCZOS[0]
    for i, coefficient in enumerate(_LANCZOS[1:], 1):
        series = g.add(g.div(coefficient, g.add(z, float(i))), series)
    t = g.add(z, 7.5)
    log_t = g.log(t)
    value = g.sub(g.add(g.mul(g.add(z, 0.5), log_t), 0.5 * math.log(2 * math.pi)), t)
    return g.add(value, g.log(series))


def _lgamma(g: Emitter, x: Value) -> Value:
    """log|gamma(x)|; below 0.5 by reflection, log(pi / |sin(pi x)|) - lgamma(1 - x)."""
    left = g.lt(x, 0.5)
    upper = _lgamma_positive(g, g.select(left, g.sub(1.0, x), x))
    sine = formulas.absolute(g, g.sin(_turns(g, x)))
    value = g.select(left, g.sub(g.log(g.div(math.pi, sine)), upper), upper)
    return g.select(g.eq(formulas.absolute(g, x), math.inf), math.inf, value)


def _digamma(g: Emitter, x: Value) -> Value:
    """Digamma by recurrence to x + 10 and the asymptotic series; below 0 by psi(1 - x) - pi / tan(pi x)."""
    negative = g.lt(x, 0.0)
    start = g.select(negative, g.sub(1.0, x), x)
    high = g.add(start, 10.0)
    square = g.recip(g.mul(high, high))
    series: Value | float = _BERNOULLI[-1]
    for coefficient in _BERNOULLI[-2::-1]:
        series = g.add(g.mul(square, series), coefficient)
    value = g.sub(g.sub(g.log(high), g.div(0.5, high)), g.mul(series, square))
    for step in range(10):
        value = g.sub(value, g.recip(g.add(start, float(step))))
    value = g.select(g.eq(start, math.inf), math.inf, value)
    reflected = g.sub(value, g.div(math.pi, g.tan(_turns(g, x))))
    is_pole = g.and_(negative, g.eq(g.floor(x), x))
    signed = g.neg(g.recip(x))  # at a zero: an infinity of the opposite sign
    return g.select(g.eq(x, 0.0), signed, g.select(is_pole, math.nan, g.select(negative, reflected, value)))


def _wide(formula: Callable[[Emitter, Value], Value], *keys: str) -> None:
    @op(*keys)
    def rule(g: Emitter, self: Value) -> Value:
        return g.cast(formula(g, tensor(g, self, g.widest)), g.output.dtype)

    rule.__doc__ = formula.__doc__


_wide(_lgamma, "aten::lgamma", "prims::lgamma", "aten::special_gammaln")
_wide(_digamma, "aten::digamma", "prims::digamma", "aten::special_digamma")


@op("aten::angle")
def angle(g: Emitter, self: Value) -> Value:
    """Return pi for negative values and 0 for all others; NaN stays NaN."""
    x = wide_input(g, self)
    value = g.select(g.lt(x, 0.0), math.pi, g.constant(np.zeros((1,) * x.rank, x.dtype)))
    return g.cast(g.select(formulas.is_nan(g, x), x, value), g.output.dtype)
