"""Comparisons, logical and bitwise operators, and selection by a condition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import BOOL, FLOAT64, Value
from t2n_core.op import formulas
from t2n_core.op.known_elements import is_always_true, is_never_negative
from t2n_core.op.promote import Tensorlike, comparable, operand, tensor
from t2n_core.op.registry import op

_COMPARISONS = {
    "eq": (),
    "ne": ("not_equal",),
    "lt": ("less",),
    "le": ("less_equal",),
    "gt": ("greater",),
    "ge": ("greater_equal",),
}


def _comparison(operator: str, aliases: tuple[str, ...]) -> None:
    @op(f"aten::{operator}", *(f"aten::{alias}" for alias in aliases), f"prims::{operator}")
    def rule(g: Emitter, self: Value, other: Tensorlike) -> Value:
        """Promote both operands as `torch.result_type` does, then compare them."""
        if operator == "ge" and isinstance(other, int) and other <= 0 and is_never_negative(self):
            return g.fill(True, g.output.shape, BOOL)
        return g.call(operator, *comparable(g, self, other))[0]


for _name, _aliases in _COMPARISONS.items():
    _comparison(_name, _aliases)


def _logic(key: str, formula: Callable[[Emitter, Value, Value], Value]) -> None:
    @op(key)
    def rule(g: Emitter, self: Value, other: Value) -> Value:
        return formula(g, _truth(g, self), _truth(g, other))


def _truth(g: Emitter, value: Value) -> Value:
    """Return True where `value` is not zero."""
    return g.cast(value, BOOL)


def _exclusive_or(g: Emitter, a: Value, b: Value) -> Value:
    return g.or_(g.and_(a, g.not_(b)), g.and_(b, g.not_(a)))


def _both(g: Emitter, a: Value, b: Value) -> Value:
    for value, other in ((a, b), (b, a)):
        if is_always_true(value):
            return g.expand(g.lift(other, len(g.output.shape)), g.output.shape)
    return g.and_(a, b)


_logic("aten::logical_and", _both)
_logic("aten::logical_or", lambda g, a, b: g.or_(a, b))
_logic("aten::logical_xor", _exclusive_or)


def _bitwise(name: str, operator: str, formula: Callable[[Emitter, Value, Value], Value]) -> None:
    aten = [f"aten::bitwise_{name}", f"aten::__{name}__"]

    @op(*aten, f"prims::bitwise_{name}")
    def rule(g: Emitter, self: Tensorlike, other: Tensorlike) -> Value:
        """Write the logical operation for booleans, the bitwise one for integers."""
        a, b = tensor(g, self, g.output.dtype), tensor(g, other, g.output.dtype)
        return formula(g, a, b) if g.output.dtype == BOOL else g.call(operator, a, b)[0]


_bitwise("and", "tract_core_bitand", _both)
_bitwise("or", "tract_core_bitor", lambda g, a, b: g.or_(a, b))
_bitwise("xor", "tract_core_bitxor", _exclusive_or)


@op("aten::bitwise_left_shift", "aten::__lshift__", "prims::shift_left")
def bitwise_left_shift(g: Emitter, self: Tensorlike, other: Tensorlike) -> Value:
    """0 for a shift by the width of the dtype or more, which tract would take modulo the width."""
    x, by, outside = _shift(g, self, other)
    shifted = g.tract_shl(x, by)
    return shifted if outside is None else g.select(outside, 0, shifted)


@op("aten::bitwise_right_shift", "aten::__rshift__", "prims::shift_right_arithmetic")
def bitwise_right_shift(g: Emitter, self: Tensorlike, other: Tensorlike) -> Value:
    """Shift right, keeping the sign; by the width of the dtype or more, only the sign remains."""
    x, by, outside = _shift(g, self, other)
    shifted = g.tract_shr(x, by)
    if outside is None:
        return shifted
    return g.select(outside, g.neg(g.cast(g.lt(x, 0), x.dtype)) if x.dtype.kind == "i" else 0, shifted)


def _shift(g: Emitter, self: Tensorlike, other: Tensorlike) -> tuple[Value, Value, Value | None]:
    """Return the operands and a mask of the amounts beyond the width; None for the mask if none is."""
    dtype = g.output.dtype
    if dtype.kind not in "iu":
        raise g.fail(f"shifts of {dtype} cannot be expressed in NNEF")
    width = dtype.itemsize * 8
    x, by = tensor(g, self, dtype), tensor(g, other, dtype)
    if isinstance(other, int) and 0 <= other < width:
        return x, by, None
    outside = g.ge(by, width)
    return x, by, outside if dtype.kind == "u" else g.or_(outside, g.lt(by, 0))


@op("aten::where.self", "aten::where.ScalarSelf", "aten::where.ScalarOther", "aten::where.Scalar", "prims::where")
def where(
    g: Emitter,
    condition: Value | None = None,
    self: Tensorlike | None = None,
    other: Tensorlike | None = None,
    pred: Value | None = None,
    a: Tensorlike | None = None,
    b: Tensorlike | None = None,
) -> Value:
    """`self` where the condition is not zero, otherwise `other`; `prims` names the same arguments differently."""
    test = condition if condition is not None else pred
    chosen = self if self is not None else a
    rejected = other if other is not None else b
    assert test is not None
    assert chosen is not None
    assert rejected is not None
    return choose(g, _truth(g, test), chosen, rejected)


def choose(g: Emitter, condition: Value, if_true: Tensorlike, if_false: Tensorlike) -> Value:
    """`select` in the dtype and shape of the result."""
    dtype = g.output.dtype
    yes, no = operand(g, if_true, dtype), operand(g, if_false, dtype)
    if not isinstance(yes, Value) and not isinstance(no, Value):
        yes = tensor(g, yes, dtype)
    return g.select(condition, yes, no)


@op("aten::masked_fill")
def masked_fill(g: Emitter, self: Value, mask: Value, value: Tensorlike) -> Value:
    return choose(g, _truth(g, mask), value, self)


@op("aten::isclose")
def isclose(
    g: Emitter, self: Value, other: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Value:
    """a == b or |a - b| <= atol + rtol * |b|, for finite values."""
    a, b = comparable(g, self, other)
    assert isinstance(a, Value)
    assert isinstance(b, Value)
    close = g.eq(a, b)
    if a.dtype.kind == "f":
        bound = g.add(g.mul(formulas.absolute(g, b), rtol), atol)
        distance = formulas.absolute(g, g.sub(a, b))
        close = g.or_(close, g.and_(g.lt(distance, np.inf), g.le(distance, bound)))
        if equal_nan:
            close = g.or_(close, g.and_(formulas.is_nan(g, a), formulas.is_nan(g, b)))
    elif rtol or atol:
        x, y = (g.cast(v, FLOAT64) for v in (a, b))
        bound = g.add(g.mul(formulas.absolute(g, y), rtol), atol)
        close = g.or_(close, g.le(formulas.absolute(g, g.sub(x, y)), bound))
    return close
