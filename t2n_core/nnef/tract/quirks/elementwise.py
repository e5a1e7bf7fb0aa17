"""Quirks of elementwise operators."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from t2n_core.nnef.emitter import Operand
from t2n_core.nnef.graph import FLOAT64, Value, is_full
from t2n_core.nnef.shapes import BROADCASTING, broadcast, broadcasts_mixed_axes, is_broadcast
from t2n_core.nnef.sizes.dims import is_static, product
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.optimiser import IN_PLACE, may_be_misread, origin_of_elements
from t2n_core.nnef.tract.quirks.quirk import BARRIER_BEFORE, OperationView, quirk, with_barriers

_COMMUTATIVE = frozenset("add mul max min".split())
_TENSORS = {
    **dict.fromkeys(("mul", "div", "pow", "and"), ("x", "y")),
    "select": ("condition", "true_value", "false_value"),
}
"""Operands of the operators that may treat one of them as a scalar."""


# ------------------------------------------------------------------------------------------- few elements minus many
def _is_broadcast_minuend(operation: OperationView) -> bool:
    minuend, other = operation.get("x"), operation.get("y")
    return isinstance(other, Value) and is_broadcast(minuend.shape if isinstance(minuend, Value) else (), other.shape)


@quirk(
    "sub",
    ("0.21.8", "0.21.11"),
    when=_is_broadcast_minuend,
    reason="a smaller operand minus a larger one is computed as the larger one minus the smaller one",
    safe="`add` of the negated second operand",
)
def swapped_sub(g: TractBuilder, operation: OperationView) -> OperationView:
    """Write `-y + x`."""
    x, y = operation.get("x"), operation.get("y")
    if y.dtype.kind not in "fi":
        raise g.fail(f"this `sub` of {y.dtype} is not supported for {g.spec}, which swaps its operands")
    return OperationView("add", {"x": g.one("neg", y), "y": x}, operation.results, operation.facts)


# ------------------------------------------------------------------------------- a second operand repeated in between
def _broadcasts_mixed_axes(operation: OperationView) -> bool:
    second, result = operation.get("y"), operation.results[0]
    if not isinstance(operation.get("x"), Value) or not isinstance(second, Value):
        return False
    return result.dtype.kind == "f" and broadcasts_mixed_axes(result.shape, second.shape)


@quirk(
    "mul div",
    ("0.21.6", "0.21.7"),
    when=_broadcasts_mixed_axes,
    reason="a second operand that is repeated along axes neither all leading nor all trailing is misread",
    safe="`tile` of that operand before",
)
def mixed_second_operand(g: TractBuilder, operation: OperationView) -> OperationView:
    """Repeat the second operand to the shape of the result."""
    return operation.with_arguments(y=g.expand(operation.get("y"), operation.results[0].shape))


# ----------------------------------------------------------------------------------------- tensors taken for scalars
def _shaping(operation: OperationView) -> Iterator[str]:
    """Yield each operand without which the others do not have the shape of the result."""
    names = _TENSORS[operation.operator]
    for name in names:
        others = [v for other in names if other != name and isinstance(v := operation.get(other), Value)]
        lacking = not others or is_broadcast(broadcast(*(v.shape for v in others)), operation.results[0].shape)
        if isinstance(operation.get(name), Value) and lacking:
            yield name


def _uniform(operation: OperationView) -> list[str]:
    """Return the operands of dynamic shape that determine the shape of the result and may be taken for scalars."""
    return [
        name
        for name in _shaping(operation)
        if name in ("x", "y", "condition")
        and not is_static(operation.get(name).shape)
        and operation.facts.is_folded(operation.get(name))
    ]


@quirk(
    "mul div pow and select",
    ("0.23.0", None),
    when=lambda operation: bool(_uniform(operation)),
    reason="a tensor of symbolic size that is all 0 or all 1 becomes a scalar, although the result needs its shape",
    safe=BARRIER_BEFORE,
)
def uniform_tensor(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after the tensor, since the engine would undo a `tile` of the other operands.

    Where symbols are fixed before, the engine computes that barrier itself; a first operand that has to be repeated
    gets another.
    """
    repaired = with_barriers(g, operation, [operation.get(name) for name in _uniform(operation)])
    if not _is_full_second(operation):
        return repaired
    repeated = _first_repeated(g, repaired)
    return with_barriers(g, repeated, [repeated.get("x")])


def _is_full_second(operation: OperationView) -> bool:
    second = operation.get("y")
    if "y" not in _shaping(operation) or not (operation.operator == "pow" or second.dtype.kind in "iu"):
        return False
    return is_full(second.weight) if second.weight is not None else operation.facts.is_folded(second)


@quirk(
    "pow div",
    when=_is_full_second,
    reason="a second operand with equal elements becomes a scalar, although the result needs its shape",
    safe="`tile` of the first operand to the shape of the result before",
)
def full_second_operand(g: TractBuilder, operation: OperationView) -> OperationView:
    """Repeat the first operand to the shape of the result."""
    return _first_repeated(g, operation)


def _first_repeated(g: TractBuilder, operation: OperationView) -> OperationView:
    operand, result = operation.get("x"), operation.results[0]
    value = operand if isinstance(operand, Value) else g.constant(operand, result.dtype)
    return operation.with_arguments(x=g.expand(g.lift(value, len(result.shape)), result.shape))


# ------------------------------------------------------------------------------------ a stride of an inserted axis
def _in_place(operation: OperationView) -> tuple[str, str] | None:
    """Return the operand that the engine overwrites with the result and reads with a wrong stride, and the other."""
    (of_x, x), (of_y, y), *bounds = operation.arguments.items()
    if isinstance(y, Value) and (not isinstance(x, Value) or is_broadcast(x.shape, y.shape)):
        (of_x, x), (of_y, y) = (of_y, y), (of_x, x)  # as the engine does
    is_square = operation.operator == "mul" and x is y  # for which the engine has an operator
    if is_square or not isinstance(x, Value):
        return None
    facts = operation.facts
    if not facts.has_unit_axis(x):
        return None
    removed, turned = facts.is_after_removed_axis(x), facts.has_summed_axis(x)
    others = (y, *(bound for _, bound in bounds))
    misread = any(may_be_misread(x, other, removed=removed, turned=turned) for other in others)
    return (of_x, of_y) if misread else None


@quirk(
    " ".join(sorted(IN_PLACE)),
    ("0.21.8", "0.23.0"),
    when=lambda operation: _in_place(operation) is not None,
    reason="an axis of size 1 was inserted into the operand that is overwritten with the result: its stride, which is "
    "that of the next axis, is taken for the number of elements after it",
    safe="that operand cast to float64 and back, or as the second operand",
)
def misread_unit_axis(g: TractBuilder, operation: OperationView) -> OperationView:
    """Swap the operands, or give the first one new memory by two casts."""
    operand_names = _in_place(operation)
    assert operand_names is not None
    of_x, of_y = operand_names
    x, y = operation.get(of_x), operation.get(of_y)
    turns = operation.operator in _COMMUTATIVE and isinstance(y, Value) and not is_broadcast(y.shape, x.shape)
    if turns and not operation.facts.has_unit_axis(y):
        return operation.with_arguments(**{of_x: y, of_y: x})
    return operation.with_arguments(**{of_x: g.cast(g.cast(x, FLOAT64), x.dtype)})


# --------------------------------------------------------------------------------------- scalars between reshapes
def _is_single(operation: OperationView, operand: Operand) -> bool:
    """Return whether an operand is a number, or a tensor of one element that the engine computes when it loads it."""
    if not isinstance(operand, Value):
        return True
    origin = origin_of_elements(operand)
    is_sliced_at_run_time = origin.producer is not None and origin.producer.name == "tract_core_dyn_slice"
    return product(operand.shape) == 1 and operation.facts.is_constant(operand) and not is_sliced_at_run_time


def _beside_scalar(operation: OperationView) -> list[Value]:
    """Return the operands from a `reshape` that an operator combines with a constant of one element."""
    operands = list(operation.arguments.values())
    several = [operand for operand in operands if not _is_single(operation, operand)]
    if len(several) == len(operands) and operation.operator != "relu":
        return []
    return [operand for operand in several if operation.facts.is_after_reshape(operand)]


@quirk(
    " ".join(sorted((BROADCASTING - {"select"}) | {"relu"})),
    ("0.21.8", "0.22"),
    when=lambda operation: bool(_beside_scalar(operation)),
    reason="where the model is decluttered, a `reshape` that merges or splits axes is moved across the operator and "
    "its constant of one element, which cannot be reshaped: the graph does not load",
    safe="a constant of several elements, along an axis of static size",
)
def scalar_beside_reshape(g: TractBuilder, operation: OperationView) -> OperationView:
    """Repeat the scalar along an axis of static size; put a barrier after the other operand if there is none."""
    shape, reshaped = operation.results[0].shape, _beside_scalar(operation)
    axes = [axis for axis, extent in enumerate(shape) if isinstance(extent, int) and extent > 1]
    if not axes:
        return with_barriers(g, operation, reshaped)
    row = tuple(extent if axis == axes[-1] else 1 for axis, extent in enumerate(shape))

    def repeated(operand: Operand) -> Value:
        if not isinstance(operand, Value):
            return g.constant(np.full(row, operand), reshaped[0].dtype)
        return g.expand(g.lift(operand, len(row)), row) if _is_single(operation, operand) else operand

    x, *others = map(repeated, operation.arguments.values())
    match operation.operator:
        case "relu":
            return OperationView("max", {"x": x, "y": repeated(0.0)}, operation.results, operation.facts)
        case "clamp":
            least, most = others
            return OperationView("max", {"x": g.min(x, most), "y": least}, operation.results, operation.facts)
        case _:
            arguments = dict(zip(operation.arguments, (x, *others), strict=True))
            return operation.with_arguments(**arguments)
