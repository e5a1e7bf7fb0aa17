"""Quirks of the operators element by element."""

from __future__ import annotations

from collections.abc import Iterator

from t2n_core.nnef.emitter import Expected, Operand
from t2n_core.nnef.graph import FLOAT64, Value, is_full
from t2n_core.nnef.shapes import broadcast, broadcasts_mixed_axes, is_broadcast
from t2n_core.nnef.sizes.dims import is_static
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.optimiser import IN_PLACE, may_be_misread
from t2n_core.nnef.tract.quirks.quirk import BARRIER_BEFORE, Statement, fenced, quirk

_COMMUTATIVE = frozenset("add mul max min".split())
_TENSORS = {
    **dict.fromkeys(("mul", "div", "pow", "and"), ("x", "y")),
    "select": ("condition", "true_value", "false_value"),
}
"""Operands of the operators that take one of them for a single number."""


# ------------------------------------------------------------------------------------------- few elements minus many
def _is_broadcast_minuend(statement: Statement) -> bool:
    minuend, other = statement.get("x"), statement.get("y")
    return isinstance(other, Value) and is_broadcast(minuend.shape if isinstance(minuend, Value) else (), other.shape)


@quirk(
    "sub",
    ("0.21.8", "0.21.11"),
    when=_is_broadcast_minuend,
    reason="fewer elements minus more are computed as the more minus the fewer",
    safe="`add` of the negated second operand",
)
def swapped_sub(g: TractBuilder, statement: Statement) -> Statement:
    """Write `-y + x`."""
    x, y = statement.get("x"), statement.get("y")
    if y.dtype.kind not in "fi":
        raise g.fail(f"this `sub` of {y.dtype} is not supported for {g.spec}, which computes it the other way round")
    return Statement("add", {"x": g.one("neg", y), "y": x}, statement.results, statement.facts)


# ------------------------------------------------------------------------------- a second operand repeated in between
def _broadcasts_mixed_axes(statement: Statement) -> bool:
    second, result = statement.get("y"), statement.results[0]
    if not isinstance(statement.get("x"), Value) or not isinstance(second, Value):
        return False
    return result.dtype.kind == "f" and broadcasts_mixed_axes(result.shape, second.shape)


@quirk(
    "mul div",
    ("0.21.6", "0.21.7"),
    when=_broadcasts_mixed_axes,
    reason="a second operand that is repeated along axes neither all leading nor all trailing is misread",
    safe="`tile` of that operand before",
)
def mixed_second_operand(g: TractBuilder, statement: Statement) -> Statement:
    """Repeat the second operand to the shape of the result."""
    return statement.with_arguments(y=g.expand(statement.get("y"), statement.results[0].shape))


# -------------------------------------------------------------------------------------- tensors taken for one number
def _shaping(statement: Statement) -> Iterator[str]:
    """Yield each operand without which the others have not the shape of the result."""
    names = _TENSORS[statement.operator]
    for name in names:
        others = [v for other in names if other != name and isinstance(v := statement.get(other), Value)]
        lacking = not others or is_broadcast(broadcast(*(v.shape for v in others)), statement.results[0].shape)
        if isinstance(statement.get(name), Value) and lacking:
            yield name


def _uniform(statement: Statement) -> list[str]:
    """Return the operands of dynamic shape that give the result its shape and may be taken for one number."""
    return [
        name
        for name in _shaping(statement)
        if name in ("x", "y", "condition")
        and not is_static(statement.get(name).shape)
        and statement.facts.is_folded(statement.get(name))
    ]


@quirk(
    "mul div pow and select",
    ("0.23.0", None),
    when=lambda statement: bool(_uniform(statement)),
    reason="a tensor of symbolic size that is all 0 or all 1 becomes one element, although the result takes its shape",
    safe=BARRIER_BEFORE,
)
def uniform_tensor(g: TractBuilder, statement: Statement) -> Statement:
    """Put a barrier after the tensor, since the engine would undo a `tile` of the other operands."""
    return fenced(g, statement, [statement.get(name) for name in _uniform(statement)])


def _is_full_second(statement: Statement) -> bool:
    second = statement.get("y")
    if "y" not in _shaping(statement) or not (statement.operator == "pow" or second.dtype.kind in "iu"):
        return False
    return is_full(second.weight) if second.weight is not None else statement.facts.is_folded(second)


@quirk(
    "pow div",
    when=_is_full_second,
    reason="a second operand that is full of one number becomes one element, although the result takes its shape",
    safe="`tile` of the first operand to the shape of the result before",
)
def full_second_operand(g: TractBuilder, statement: Statement) -> Statement:
    """Repeat the first operand to the shape of the result."""
    return statement.with_arguments(x=_repeated(g, statement.get("x"), statement.results[0]))


def _repeated(g: TractBuilder, operand: Operand, result: Expected) -> Value:
    value = operand if isinstance(operand, Value) else g.constant(operand, result.dtype)
    return g.expand(g.lift(value, len(result.shape)), result.shape)


# ------------------------------------------------------------------------------------ a stride of an inserted axis
def _in_place(statement: Statement) -> tuple[str, str] | None:
    """Return the operand that the engine writes the result over and reads with a wrong stride, and the other one."""
    (of_x, x), (of_y, y), *bounds = statement.arguments.items()
    if isinstance(y, Value) and (not isinstance(x, Value) or is_broadcast(x.shape, y.shape)):
        (of_x, x), (of_y, y) = (of_y, y), (of_x, x)  # as the engine does
    is_square = statement.operator == "mul" and x is y  # which the engine has an operator for
    if is_square or not isinstance(x, Value):
        return None
    misread = any(may_be_misread(x, operand) for operand in (y, *(bound for _, bound in bounds)))
    return (of_x, of_y) if misread and statement.facts.has_unit_axis(x) else None


@quirk(
    " ".join(sorted(IN_PLACE)),
    ("0.21.8", "0.23.0"),
    when=lambda statement: _in_place(statement) is not None,
    reason="an axis of one element was inserted into the operand that the result is written over: its stride, which "
    "is that of the next axis, is taken for the number of elements after it",
    safe="that operand cast to float64 and back, or as the second operand",
)
def misread_unit_axis(g: TractBuilder, statement: Statement) -> Statement:
    """Swap the operands, or give the first one new memory by two casts."""
    place = _in_place(statement)
    assert place is not None
    of_x, of_y = place
    x, y = statement.get(of_x), statement.get(of_y)
    turns = statement.operator in _COMMUTATIVE and isinstance(y, Value) and not is_broadcast(y.shape, x.shape)
    if turns and not statement.facts.has_unit_axis(y):
        return statement.with_arguments(**{of_x: y, of_y: x})
    return statement.with_arguments(**{of_x: g.cast(g.cast(x, FLOAT64), x.dtype)})


__all__ = [
    "full_second_operand",
    "misread_unit_axis",
    "mixed_second_operand",
    "swapped_sub",
    "uniform_tensor",
]
