"""Prove that attention masks have no fully masked row, from the positions that they are computed from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import sympy
import torch

from t2n_core.nnef.sizes.dims import Dim, as_dim, at_most, same
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph, TorchOp
from t2n_core.torch_graph.proofs.identities import COPIES

ATTENTION: Final = "aten::scaled_dot_product_attention"


@dataclass(frozen=True, slots=True)
class Line:
    """An integer for each query: `offset + slope * row`."""

    offset: Dim
    slope: Dim = 0

    def plus(self, other: Line, times: int = 1) -> Line:
        """Return the sum of this line and a multiple of another."""
        return Line(as_dim(self.offset + times * other.offset), as_dim(self.slope + times * other.slope))


Place: TypeAlias = "tuple[Line | None, ...]"
"""The index along each axis of the element for a query; None for an index that may be any."""
Found = TypeVar("Found")
ZERO: Final = Line(0)
_FILLED: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    **dict.fromkeys(("full", "full_like", "new_full"), lambda arguments: arguments["fill_value"]),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), lambda _: 1),
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros"), lambda _: 0),
    "scalar_tensor": lambda arguments: arguments["s"],
}
"""Operators whose result is filled with one value, and how to read that value from their arguments."""
_COMPARED: Final = frozenset({"le", "lt", "ge", "gt", "eq", "ne"})
_COMPUTED: Final = frozenset(
    """linear matmul mm bmm baddbmm addmm einsum conv1d conv2d conv3d convolution layer_norm native_layer_norm
    rms_norm group_norm batch_norm scaled_dot_product_attention sigmoid tanh softmax sin cos""".split()
)
"""Operators whose results are finite where activations and weights are."""
_ARITHMETIC: Final = frozenset(
    "add sub mul neg abs clamp clamp_min clamp_max minimum maximum relu gelu silu sum mean".split()
)
"""Operators whose results are finite if their operands are, unless they overflow."""
_MOVES: Final = frozenset(COPIES) | frozenset(
    """embedding where masked_fill cat stack slice select split chunk unbind index index_select gather permute transpose
    t expand repeat flip roll pad constant_pad_nd view reshape _unsafe_view flatten unflatten unsqueeze
    squeeze""".split()
)
"""Operators that return elements of their operands."""
_LOWEST: Final = float(torch.finfo(torch.float32).min)
_MASKING: Final = 1e30
"""A constant of this magnitude stands for minus infinity: the sum of two may overflow."""
_DECIDING: Final = {
    **dict.fromkeys(("logical_and", "bitwise_and", "__and__"), False),
    **dict.fromkeys(("logical_or", "bitwise_or", "__or__"), True),
}
"""Operators on two conditions, with the value of one operand that decides the result."""


def open_masks(graph: TorchModuleIRGraph) -> dict[int, float]:
    """Return the identities of the attention masks that are proven to have no fully masked row, each with `open_at`."""
    masks = [op.arguments["attn_mask"] for op in graph.op_nodes if op.kind == ATTENTION]
    unique = {id(mask): mask for mask in masks if isinstance(mask, TensorVariable)}
    bounds = {identity: open_at(mask) for identity, mask in unique.items()}
    return {identity: bound for identity, bound in bounds.items() if bound is not None}


def open_at(mask: TensorVariable) -> float | None:
    """Return a number that some key of every query is proven to reach in a mask [..., queries, keys].

    A key at which a condition is true reaches 0. Return None without a proof.
    """
    if mask.rank < 2:
        return None
    rows, columns = mask.shape[-2:]
    shown = Shown(as_dim(rows - 1))
    for key in _keys(rows, columns):
        if not (shown.never_negative(key) and shown.never_negative(Line(as_dim(columns - 1)).plus(key, -1))):
            continue
        position = (*[None] * (mask.rank - 2), Line(0, 1), key)
        least = shown.least_truth(mask, position) if mask.dtype is torch.bool else shown.least(mask, position)
        if least is not None:
            return least
    return None


def _keys(rows: Dim, columns: Dim) -> Iterator[Line]:
    """Yield candidate keys: the query's own, with both aligned at the end or at the start; then the first and last."""
    yield Line(as_dim(columns - rows), 1)
    yield Line(0, 1)
    yield ZERO
    yield Line(as_dim(columns - 1))


@dataclass(frozen=True, slots=True)
class Shown:
    """Facts about a tensor at one position for each query, up to the last query."""

    last: Dim

    def never_negative(self, number: Line) -> bool:
        """Return whether a line is proven to be 0 or more, which its values at the first and last query decide."""
        return at_most(0, number.offset) and at_most(0, as_dim(number.offset + number.slope * self.last))

    def number(self, value: Any, position: Place) -> Line | None:
        """Return the integer element of a tensor, or a size, as a line; None if it is unknown."""
        if isinstance(value, int | sympy.Expr):
            return Line(as_dim(value))
        if not isinstance(value, TensorVariable) or value.dtype.is_floating_point or value.dtype.is_complex:
            return None
        if value.data is not None:
            return Line(int(value.data)) if value.data.numel() == 1 else None
        if value.producer is None:
            return None
        name, arguments = _name(value.producer), value.producer.arguments
        if name == "arange":
            start, step, index = self.number(arguments.get("start", 0), ()), arguments.get("step", 1), position[0]
            return None if start is None or index is None or not isinstance(step, int) else start.plus(index, step)
        if name in ("add", "sub") and isinstance(arguments.get("alpha", 1), int):
            line, other = (
                self.number(v, _broadcast_position(v, position)) for v in (arguments["self"], arguments["other"])
            )
            times = arguments.get("alpha", 1) * (1 if name == "add" else -1)
            return None if line is None or other is None else line.plus(other, times)
        return _follow(self.number, value.producer, position)

    def truth(self, value: Any, position: Place) -> bool | None:
        """Return the proven truth of a condition for every query; None if it is unknown."""
        if isinstance(value, bool | int):
            return bool(value)
        if not isinstance(value, TensorVariable) or value.dtype is not torch.bool:
            return None
        if value.data is not None:
            truths = {bool(value.data.any()), bool(value.data.all())}
            return truths.pop() if len(truths) == 1 else None
        if value.producer is None:
            return None
        name, arguments = _name(value.producer), value.producer.arguments
        if name in ("logical_not", "bitwise_not"):
            opposite = self.truth(arguments["self"], position)
            return None if opposite is None else not opposite
        if name in _DECIDING:
            both = [self.truth(v, _broadcast_position(v, position)) for v in (arguments["self"], arguments["other"])]
            decides = _DECIDING[name]
            return decides if decides in both else None if None in both else not decides
        if name in _COMPARED:
            line, other = (
                self.number(v, _broadcast_position(v, position)) for v in (arguments["self"], arguments["other"])
            )
            return None if line is None or other is None else self._compare(name, line, other)
        return _follow(self.truth, value.producer, position)

    def least_truth(self, value: Any, position: Place) -> float | None:
        """Return 0 if a condition is proven to be true for every query, otherwise None."""
        return 0.0 if self.truth(value, position) else None

    def _compare(self, name: str, line: Line, other: Line) -> bool | None:
        if name in ("eq", "ne"):
            is_equal = same(line.offset, other.offset) and same(line.slope, other.slope)
            return name == "eq" if is_equal else None
        more = line.plus(other, -1) if name in ("ge", "gt") else other.plus(line, -1)
        least = Line(1 if name in ("gt", "lt") else 0)
        if self.never_negative(more.plus(least, -1)):
            return True
        return False if self.never_negative(least.plus(more, -1).plus(Line(1), -1)) else None

    def least(self, value: Any, position: Place) -> float | None:
        """Return a lower bound of an element for every query; None if it is not proven to be finite."""
        bound = self._least_chosen(value, position)
        is_bias = bound is None and isinstance(value, TensorVariable) and is_computed(value)
        return _LOWEST if is_bias else bound

    def _least_chosen(self, value: Any, position: Place) -> float | None:
        """Return a lower bound of an element that is a constant, or that is taken from constants."""
        if isinstance(value, int | float):
            return float(value) if math.isfinite(value) else None
        if not isinstance(value, TensorVariable):
            return None
        if value.data is not None:
            is_known = value.data.numel() > 0 and bool(value.data.isfinite().all())
            return float(value.data.min()) if is_known else None
        if value.producer is None:
            return None
        name, arguments = _name(value.producer), value.producer.arguments
        if name in ("where", "masked_fill"):
            true_branch, left = ("self", "other") if name == "where" else ("value", "self")
            condition = arguments["condition" if name == "where" else "mask"]
            test = self.truth(condition, _broadcast_position(condition, position))
            read = [arguments[branch] for branch, unread in ((true_branch, False), (left, True)) if test is not unread]
            bounds = [self.least(v, _broadcast_position(v, position)) for v in read]
            return None if None in bounds else min(bound for bound in bounds if bound is not None)
        return _follow(self.least, value.producer, position)


def is_computed(value: TensorVariable) -> bool:
    """Return whether all elements of a tensor are computed from activations and finite constants.

    Such a bias, of relative positions for example, masks nothing. Its elements may overflow only as activations may: a
    constant that masks, such as the lowest finite number, is an element itself and no operand of arithmetic.
    """
    pending: list[tuple[Any, float]] = [(value, math.inf)]
    seen: set[tuple[int, float]] = set()
    while pending:
        operand, limit = pending.pop()
        if isinstance(operand, list | tuple):
            pending += [(item, limit) for item in operand]
        elif isinstance(operand, float) and not abs(operand) < limit:
            return False
        elif isinstance(operand, TensorVariable) and (id(operand), limit) not in seen:
            seen.add((id(operand), limit))
            if not operand.dtype.is_floating_point:
                continue
            if operand.data is not None:
                if not bool((operand.data.float().abs() < limit).all()):
                    return False
            else:
                name = None if operand.producer is None else _name(operand.producer)
                if operand.producer is None or name not in _COMPUTED | _ARITHMETIC | _MOVES | _FILLED.keys():
                    return False
                limit = limit if name in _MOVES | _FILLED.keys() else _MASKING
                read = operand.producer.arguments.values()
                pending += [(v, limit) for v in read if name not in _COMPUTED or _is_weight(v)]
    return True


def _is_weight(value: Any) -> bool:
    return isinstance(value, TensorVariable) and value.data is not None


def _name(op: TorchOp) -> str:
    namespace, _, name = op.kind.partition(".")[0].partition("::")
    return name if namespace == "aten" else op.kind


def _broadcast_position(operand: Any, position: Place) -> Place:
    """Return the position in a broadcast operand."""
    if not isinstance(operand, TensorVariable):
        return ()
    axes = position[len(position) - operand.rank :]
    return tuple(ZERO if same(size, 1) else index for size, index in zip(operand.shape, axes, strict=True))


def _follow(ask: Callable[[Any, Place], Found], op: TorchOp, position: Place) -> Found | None:
    """Apply `ask` to the source of an element that an operator moves; return None for an operator that computes."""
    name, arguments, source = _name(op), op.arguments, op.arguments.get("self")
    if name in _FILLED:
        return ask(_FILLED[name](arguments), ())
    if not isinstance(source, TensorVariable):
        return None
    if name in COPIES:
        return ask(source, position)
    if name == "expand":
        return ask(source, _broadcast_position(source, position))
    if name == "slice" and arguments["step"] == 1:
        axis, start = arguments["dim"] % source.rank, arguments["start"] or 0
        index = position[axis] if isinstance(start, int | sympy.Expr) and at_most(0, start) else None
        moved = None if index is None else index.plus(Line(start))
        return ask(source, (*position[:axis], moved, *position[axis + 1 :]))
    if name in ("unsqueeze", "squeeze", "view", "reshape"):
        result = op.outputs[0]
        assert result is not None
        lone = [same(size, 1) for size in result.shape]
        rest = [index for index, is_lone in zip(position, lone, strict=True) if not is_lone]
        sizes = [size for size, is_lone in zip(result.shape, lone, strict=True) if not is_lone]
        long = [size for size in source.shape if not same(size, 1)]
        if len(long) == len(sizes) and all(same(a, b) for a, b in zip(long, sizes, strict=True)):
            left = iter(rest)
            return ask(source, tuple(ZERO if same(size, 1) else next(left) for size in source.shape))
    return None
