"""Shape and dtype inference for the operations that a rule writes between its inputs and its captured outputs.

For an operator that is not listed, the rule passes the result (`out=`). All shapes may contain symbolic sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from t2n_core.errors import LowerError
from t2n_core.nnef.graph import BOOL, INT64, Value, values_in
from t2n_core.nnef.sizes.dims import Dim, Shape, as_dim, floor_div, is_static, product, same, shape_text

Result: TypeAlias = tuple[Shape, np.dtype[Any]]
Arguments: TypeAlias = Mapping[str, Any]


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that shapes of equal rank broadcast to.

    A symbolic size is assumed to differ from 1, as PyTorch assumes during capture.
    """
    rank = max(len(s) for s in shapes)
    result: list[Dim] = []
    for axis in range(rank):
        sizes = [s[axis] for s in shapes if len(s) == rank]
        wide = [d for d in sizes if not (isinstance(d, int) and d == 1)]
        if wide and not all(same(wide[0], d) for d in wide[1:]):
            raise LowerError(f"shapes {', '.join(map(shape_text, shapes))} do not broadcast")
        result.append(wide[0] if wide else 1)
    return tuple(result)


def is_broadcast(shape: Shape, other: Shape) -> bool:
    """Return whether a tensor of `shape` is broadcast in an operation with one of `other`; aligned at the end."""
    rank = max(len(shape), len(other))
    aligned = ((1,) * (rank - len(s)) + tuple(s) for s in (shape, other))
    return any(same(a, 1) and not same(b, 1) for a, b in zip(*aligned, strict=True))


def broadcasts_mixed_axes(shape: Shape, other: Shape) -> bool:
    """Return whether the axes along which `other` is broadcast to `shape` are neither all leading nor all trailing."""
    matches = [same(a, b) for a, b in zip(shape, other, strict=True)]
    ones = [same(b, 1) for b in other]
    first_changed = next((i for i, equal in enumerate(matches) if not equal), len(matches))
    first_kept = next((i for i, is_one in enumerate(ones) if not is_one), len(ones))
    return not all(ones[first_changed:]) and not all(matches[first_kept:])


def _first(arguments: Arguments) -> Value:
    return next(v for a in arguments.values() for v in values_in(a))


def _elementwise(arguments: Arguments) -> Result:
    values = [v for a in arguments.values() for v in values_in(a)]
    return broadcast(*(v.shape for v in values)), values[0].dtype


def _comparison(arguments: Arguments) -> Result:
    return _elementwise(arguments)[0], BOOL


def _select(arguments: Arguments) -> Result:
    branches = [v for name in ("true_value", "false_value") for v in values_in(arguments[name])]
    shape = broadcast(arguments["condition"].shape, *(v.shape for v in branches))
    return shape, branches[0].dtype


def _reduce(arguments: Arguments) -> Result:
    value = _first(arguments)
    axes = set(arguments["axes"])
    return tuple(1 if i in axes else d for i, d in enumerate(value.shape)), value.dtype


def _arg_reduce(arguments: Arguments) -> Result:
    return _reduce(arguments)[0], INT64


def _reshape(arguments: Arguments) -> Result:
    value: Value = arguments["input"]
    extents = list(arguments["shape"])
    if arguments.get("axis_start", 0) or arguments.get("axis_count", -1) != -1:
        start, count = arguments.get("axis_start", 0), arguments.get("axis_count", -1)
        stop = value.rank if count == -1 else start + count
        extents = [*value.shape[:start], *extents, *value.shape[stop:]]
    shape = tuple(as_dim(d) for d in extents)
    if not same(product(shape), product(value.shape)):
        raise LowerError(f"reshape of {shape_text(value.shape)} to {shape_text(shape)}: another number of elements")
    return shape, value.dtype


def _transpose(arguments: Arguments) -> Result:
    value: Value = arguments["input"]
    axes = arguments["axes"]
    if sorted(axes) != list(range(value.rank)):
        raise LowerError(f"transpose of rank {value.rank} by {axes}")
    return tuple(value.shape[a] for a in axes), value.dtype


def _unsqueeze(arguments: Arguments) -> Result:
    value: Value = arguments["input"]
    shape = list(value.shape)
    for axis in sorted(arguments["axes"]):
        shape.insert(axis, 1)
    return tuple(shape), value.dtype


def _squeeze(arguments: Arguments) -> Result:
    value: Value = arguments["input"]
    axes = set(arguments["axes"])
    return tuple(d for i, d in enumerate(value.shape) if i not in axes), value.dtype


def _concat(arguments: Arguments) -> Result:
    values, axis = arguments["values"], arguments["axis"]
    total: Dim = 0
    for v in values:
        total = total + v.shape[axis]
    shape = list(values[0].shape)
    shape[axis] = as_dim(total)
    return tuple(shape), values[0].dtype


def _stack(arguments: Arguments) -> Result:
    values = arguments["values"]
    shape = list(values[0].shape)
    shape.insert(arguments["axis"], len(values))
    return tuple(shape), values[0].dtype


def _slice(arguments: Arguments) -> Result:
    value: Value = arguments["input"]
    shape = list(value.shape)
    strides = arguments.get("stride") or [1] * len(arguments["axes"])
    for axis, begin, end, stride in zip(arguments["axes"], arguments["begin"], arguments["end"], strides, strict=True):
        stop = shape[axis] if isinstance(end, int) and end == 0 else end
        length = stop - begin
        if stride != 1:
            if not is_static((length,)):
                raise LowerError("a stride over a symbolic size needs its result shape")
            length = -(-int(length) // stride)
        shape[axis] = as_dim(length)
    return tuple(shape), value.dtype


def _pad(arguments: Arguments) -> Result:
    value: Value = arguments["input"]
    return tuple(as_dim(d + p + q) for d, (p, q) in zip(value.shape, arguments["padding"], strict=True)), value.dtype


def _tile(arguments: Arguments) -> Result:
    value: Value = arguments["input"]
    return tuple(as_dim(d * r) for d, r in zip(value.shape, arguments["repeats"], strict=True)), value.dtype


def _matmul(arguments: Arguments) -> Result:
    a, b = arguments["A"], arguments["B"]
    left, right = list(a.shape), list(b.shape)
    if arguments.get("transposeA"):
        left[-1], left[-2] = left[-2], left[-1]
    if arguments.get("transposeB"):
        right[-1], right[-2] = right[-2], right[-1]
    if not same(left[-1], right[-2]):
        raise LowerError(f"matmul of {shape_text(a.shape)} and {shape_text(b.shape)}: inner sizes differ")
    return (*broadcast(tuple(left[:-2]), tuple(right[:-2])), left[-2], right[-1]), a.dtype


def _linear(arguments: Arguments) -> Result:
    value, weight = arguments["input"], arguments["filter"]
    return (*value.shape[:-1], weight.shape[0]), value.dtype


def _gather(arguments: Arguments) -> Result:
    value, indices, axis = arguments["input"], arguments["indices"], arguments["axis"]
    return (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :]), value.dtype


def _gather_elements(arguments: Arguments) -> Result:
    return arguments["indices"].shape, arguments["input"].dtype


def _same_as_first(arguments: Arguments) -> Result:
    value = _first(arguments)
    return value.shape, value.dtype


def _to_shape(arguments: Arguments) -> Result:
    return tuple(as_dim(d) for d in arguments["shape"]), arguments["input"].dtype


def _window(extent: Dim, size: Dim, stride: int, dilation: int, padding: tuple[int, int]) -> Dim:
    """Return the number of positions of a window along one axis."""
    room = extent + padding[0] + padding[1] - dilation * (size - 1) - 1
    return as_dim(floor_div(as_dim(room), stride) + 1)


def _conv(arguments: Arguments) -> Result:
    value, weight = arguments["input"], arguments["filter"]
    count = value.rank - 2
    stride, dilation = arguments.get("stride") or [1] * count, arguments.get("dilation") or [1] * count
    places = zip(value.shape[2:], weight.shape[2:], stride, dilation, arguments["padding"], strict=True)
    return (value.shape[0], weight.shape[0], *(_window(*window) for window in places)), value.dtype


def _pool(arguments: Arguments) -> Result:
    value, size = arguments["input"], arguments["size"]
    stride, dilation = arguments.get("stride") or [1] * value.rank, arguments.get("dilation") or [1] * value.rank
    padding = arguments["padding"]
    return tuple(_window(*p) for p in zip(value.shape, size, stride, dilation, padding, strict=True)), value.dtype


UNARY = frozenset(
    """copy neg rcp recip exp log sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh abs sign floor ceil
    round sqr sqrt rsqr rsqrt log2 not relu sigmoid elu gelu silu softplus leaky_relu prelu softmax square
    tract_core_erf tract_core_round_even tract_core_hard_swish tract_core_silu tract_transformers_silu
    tract_core_bitnot tract_core_softmax tract_core_log_softmax tract_core_gelu_approx tract_core_pow_const
    tract_core_trilu tract_core_rms_norm tract_transformers_rms_norm tract_core_cumsum
    tract_core_scatter_elements tract_core_scatter_nd tract_core_fft batch_normalization""".split()
)
_BINARY = """add sub mul div pow min max and or clamp tract_core_bitand tract_core_bitor tract_core_bitxor
    tract_core_xor tract_shl tract_shr"""
_COMPARE = "lt gt le ge eq ne"

INFER: dict[str, Callable[[Arguments], Result]] = {
    **dict.fromkeys(UNARY, _same_as_first),
    **dict.fromkeys(_BINARY.split(), _elementwise),
    **dict.fromkeys(_COMPARE.split(), _comparison),
    **dict.fromkeys(("sum_reduce", "mean_reduce", "max_reduce", "min_reduce", "any_reduce", "all_reduce",
                     "tract_core_product_reduce"), _reduce),
    **dict.fromkeys(("argmax_reduce", "argmin_reduce", "tract_core_argmax_reduce_last",
                     "tract_core_argmin_reduce_last"), _arg_reduce),
    "tract_core_is_nan": lambda a: (_first(a).shape, BOOL),
    "tract_core_is_inf": lambda a: (_first(a).shape, BOOL),
    "select": _select,
    "reshape": _reshape,
    "transpose": _transpose,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "concat": _concat,
    "stack": _stack,
    "slice": _slice,
    "pad": _pad,
    "tile": _tile,
    "conv": _conv,
    **dict.fromkeys(("max_pool", "avg_pool", "box"), _pool),
    "matmul": _matmul,
    "linear": _linear,
    "tract_core_gather": _gather,
    "gather": _gather,
    "tract_core_gather_elements": _gather_elements,
    "tract_core_broadcast": _to_shape,
}  # fmt: skip

BROADCASTING = frozenset([*_BINARY.split(), *_COMPARE.split(), "select"])
"""Operators whose tensor operands must have one rank: NNEF aligns leading axes, PyTorch trailing ones."""


def infer(name: str, arguments: Arguments) -> Result:
    """Return the shape and dtype of the single result of an operation. Raises LowerError for wrong arguments."""
    rule = INFER.get(name)
    if rule is None:
        raise LowerError(f"the shape of `{name}` cannot be inferred from its arguments: its rule must pass `out=`")
    return rule(arguments)


def check_shape(got: Sequence[Dim], expected: Sequence[Dim]) -> bool:
    """Return whether a rule's result has the captured shape."""
    return len(got) == len(expected) and all(same(a, b) for a, b in zip(got, expected, strict=True))


def overruns_row(extent: Dim, field: int, padding: int, stride: int) -> bool:
    """Return whether the last tap of a row's first window, of `field` elements, can be at `extent + stride` or later.

    `padding` is the padding before the row. A dynamic extent counts as 1, its smallest value.
    """
    shortest = extent if isinstance(extent, int) else 1
    return field - 1 - padding >= shortest + stride
