"""Prediction of what tract's optimiser does to an operation, so that the emitter can avoid what it miscompiles."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from t2n_core.nnef.emitter import PRODUCTS, Operand
from t2n_core.nnef.graph import FLOAT16, FLOAT32, Operation, Value
from t2n_core.nnef.shapes import BROADCASTING, UNARY, is_broadcast
from t2n_core.nnef.sizes.dims import Dim, Shape, is_static, product, same
from t2n_core.nnef.sizes.reshapes import merged_axes, merged_axis, regroups
from t2n_core.nnef.tract.constants import is_constant
from t2n_core.nnef.tract.propagated import Propagated

_Follow: TypeAlias = Callable[[Operation], Iterable[Value]]
_PASS_TILES = frozenset({"reshape", "transpose", "squeeze", "unsqueeze", "concat", "slice", "tract_core_cast"}) | (
    UNARY - {"tract_core_trilu"}
)
"""Operators that the engine moves a `tile` across, besides elementwise operators of one tensor and a scalar."""


_PRODUCTS = PRODUCTS | {"tract_core_einsum"}
_STOP_RESHAPES = _PRODUCTS | {"tract_core_scan", "tract_core_gather", "tract_core_trilu"}
"""Operators that the engine moves no `reshape` across."""

_CHANGE_AXES = frozenset({"reshape", "unsqueeze", "squeeze"})
_INTO_CONVOLUTIONS = frozenset("add sub mul div reshape squeeze unsqueeze transpose copy".split())
"""Operators through which the engine sees the convolution in front of an elementwise operator."""
KEEP_ELEMENTS = frozenset("reshape unsqueeze squeeze transpose tile copy tract_core_cast".split())
_MIXES_STRIDES = frozenset({"softmax", "matmul", "linear", "reshape", "tract_core_einsum"})
"""Operators that a stride is moved across although they then compute something else, or cannot be built."""
_STRIDE_STOPS = frozenset({"conv", "deconv", "tract_core_scan", "tract_core_trilu"})
"""Operators that a stride is not moved across."""

_SUMS = frozenset({"sum_reduce", "mean_reduce"})
IN_PLACE = frozenset("add sub mul div max min clamp".split())
"""Operators that the engine computes in the memory of the first operand, many elements at a time."""
_OWN_MEMORY = _PRODUCTS | {"conv", "deconv", "box", "max_pool", "select", "tract_core_cast", "tract_core_scan"}
"""Operators whose result has its own memory, whatever the optimiser does."""


def is_smaller(value: Operand, other: Operand) -> bool:
    """Return whether this is a Python number, or a tensor broadcast to the shape of the other, a float32 tensor."""
    if not isinstance(other, Value) or other.dtype != FLOAT32:
        return False
    if not isinstance(value, Value):
        return True
    if value.rank > other.rank:
        return False
    shape = (1,) * (other.rank - value.rank) + value.shape
    return is_broadcast(shape, other.shape) and not is_broadcast(other.shape, shape)


def _follow_all_but(stops: frozenset[str]) -> _Follow:
    """Return what readers follow that stop at these operators, and at a `concat` of one value, which is a barrier."""
    return lambda operation: () if operation.name in stops or is_single_concat(operation) else operation.inputs()


def _follow_tile(operation: Operation) -> Iterable[Value]:
    sources = list(operation.inputs())
    if operation.name not in BROADCASTING:
        return sources if operation.name in _PASS_TILES else ()
    wide = [v for v in sources if product(v.shape) != 1]
    return wide if len(wide) == 1 else ()


def _follow_arithmetic(operation: Operation) -> Iterable[Value]:
    return operation.inputs() if operation.name in _INTO_CONVOLUTIONS else ()


def _follow_stride(operation: Operation) -> Iterable[Value]:
    """Return the operands that a stride is moved to: none of one element, which it leaves as it is."""
    if operation.name in BROADCASTING:
        return [operand for operand in operation.inputs() if product(operand.shape) != 1]
    return () if operation.name in _STRIDE_STOPS or is_single_concat(operation) else operation.inputs()


_FOLLOW_RESHAPE = _follow_all_but(_STOP_RESHAPES)


def _origins(*values: Value, follow: _Follow = _FOLLOW_RESHAPE) -> Iterator[tuple[Value, Operation]]:
    """Yield the values that a reader of these can be moved directly after, each with the operation that produces it.

    `follow` returns the operands of an operation that a reader of its results is moved to; by default for a `reshape`.
    """
    pending, seen = list(values), set(map(id, values))
    while pending:
        value = pending.pop()
        if value.producer is None:
            continue
        yield value, value.producer
        sources = [v for v in follow(value.producer) if id(v) not in seen]
        pending += sources
        seen.update(map(id, sources))


def is_tiled(value: Value) -> bool:
    """Return whether the engine can move a `tile` directly before the readers of `value`."""
    return any(made.name == "tile" for _, made in _origins(value, follow=_follow_tile))


def from_convolution() -> Propagated:
    """Return the property that arithmetic on a value may be folded into a convolution; see `convolutions_of`."""
    return Propagated(
        lambda value: list(_follow_arithmetic(value.producer)) if value.producer else [],
        lambda value, source_flags: any(source_flags) or (value.producer is not None and value.producer.name == "conv"),
    )


def after_reshape() -> Propagated:
    """Return the property that a `reshape` which merges or splits axes can be moved directly before the readers.

    That of a product's operand is moved after the product if it merges batch axes; a convolution of one element is a
    product too. Of weights there is none left: they are computed before.
    """
    follow, constant = _follow_all_but(_STOP_RESHAPES - _PRODUCTS), is_constant()

    def followed(value: Value) -> list[Value]:
        made = value.producer
        if made is None or constant(value) or (made.name == "conv" and not _moves_reshape(made)):
            return []
        return list(follow(made))

    return Propagated(
        followed,
        lambda value, source_flags: (
            any(source_flags) or (value.producer is not None and not constant(value) and _regroups(value.producer))
        ),
    )


def _moves_reshape(convolution: Operation) -> bool:
    """Return whether a `reshape` before a convolution may be moved after it because it merges rows or places."""
    if not _is_pointwise(convolution) or convolution.arguments.get("groups", 1) != 1:
        return False
    made = convolution.arguments["input"].producer
    if made is None or made.name != "reshape":
        return True  # one may be moved directly before it
    return any(axis != 1 for axis in merged_axes(made.arguments["input"].shape, made.outputs[0].shape))


def _regroups(operation: Operation) -> bool:
    return operation.name == "reshape" and regroups(next(iter(operation.inputs())).shape, operation.outputs[0].shape)


def convolutions_of(value: Value) -> Iterator[Operation]:
    """Yield the convolutions into whose kernels and biases arithmetic on `value` may be folded."""
    return (made for _, made in _origins(value, follow=_follow_arithmetic) if made.name == "conv")


def passes_strides_wrongly(value: Value, constant: Propagated) -> bool:
    """Return whether a stride at a convolution's input can be moved before an operator with which it does not commute.

    The engine moves it across everything that is computed from one value, up to another convolution. What is computed
    from weights alone is already a constant then.
    """
    origins = _origins(value, follow=_follow_stride)
    return any(
        (producer.name in _MIXES_STRIDES or _is_product(producer) or _begins_dynamically(producer))
        and not constant(origin)
        for origin, producer in origins
    )


def _begins_dynamically(operation: Operation) -> bool:
    """Return whether a slice begins at a dynamic size, which the engine cannot divide by a stride."""
    arguments = operation.arguments
    begins = {"slice": arguments.get("begin"), "tract_core_dyn_slice": [arguments.get("start")]}.get(operation.name)
    return begins is not None and not all(isinstance(begin, int) for begin in begins)


def _is_product(operation: Operation) -> bool:
    """Return whether the engine computes a convolution as a product: windows of one element over dynamic axes."""
    if operation.name != "conv":
        return False
    sizes = operation.arguments["filter"].shape[2:]
    return all(size == 1 for size in sizes) and not is_static(operation.outputs[0].shape[2:])


def may_be_misread(x: Value, y: Operand, *, removed: bool, turned: bool) -> bool:
    """Return whether an inserted axis of size 1 gives `x` a wrong stride in an elementwise operator with `y`.

    It can if both shapes agree after the leading axes of size 1, and such a leading axis may be an inserted one. With
    `removed`, the engine may still have leading axes that the graph has removed; with `turned`, it may have the axes in
    another order.
    """
    if not isinstance(y, Value) or x.dtype not in (FLOAT16, FLOAT32):
        return False
    pairs = list(zip(x.shape, y.shape, strict=False))
    trailing_pairs = list(itertools.dropwhile(lambda pair: pair[1] == 1, pairs))
    if not trailing_pairs or not (turned or all(same(*pair) for pair in trailing_pairs)):
        return False  # it is computed element by element, or one element is used for many
    in_front = itertools.takewhile(lambda pair: _may_be_one(pair[1]), pairs)
    return removed or turned or any(_may_be_one(extent) for extent, _ in in_front)


def unit_axis() -> Propagated:
    """Return the property that a value may have an inserted axis of size 1 with a wrong stride in the engine.

    The stride is right if all extents are static, except after a sum.
    """
    return Propagated(_of_same_axes, lambda value, source_flags: _gets_unit_axis(value) or any(source_flags))


def after_removed_axis() -> Propagated:
    """Return the property that the engine may remove an axis of size 1 after the readers of a value, and not before."""

    def sources(value: Value) -> list[Value]:
        made = value.producer
        return [] if made is None or made.name in _OWN_MEMORY else list(made.inputs())

    def rule(value: Value, sources: Sequence[bool]) -> bool:
        made = value.producer
        return any(sources) or (made is not None and _removes(made))

    return Propagated(sources, rule)


def _removes(operation: Operation) -> bool:
    """Return whether this may remove an axis of size 1."""
    if operation.name != "reshape":
        return operation.name == "squeeze"
    return _inserts(operation.outputs[0].shape, next(iter(operation.inputs())).shape)


def summed_axis() -> Propagated:
    """Return the property that a value has an axis of size 1 from the sum of a product, whose stride may be wrong.

    The engine may move such an axis in front of the others, since it moves transposes across the operators between.
    """

    def rule(value: Value, sources: Sequence[bool]) -> bool:
        made = value.producer
        if made is None or made.name not in _SUMS:
            return any(sources)
        return any(producer.name in _PRODUCTS for _, producer in _origins(*made.inputs()))

    return Propagated(_of_same_axes, rule)


def _gets_unit_axis(value: Value) -> bool:
    producer = value.producer
    if producer is None:
        return False
    if producer.name in _SUMS:  # a product with ones, after which the axis is inserted again
        return True
    if is_static(value.shape):
        return False
    return producer.name == "unsqueeze" or (
        producer.name == "reshape" and _inserts(next(iter(producer.inputs())).shape, value.shape)
    )


def _of_same_axes(value: Value) -> list[Value]:
    """Return the operands whose axes, as the engine represents them, `value` may have inherited."""
    producer = value.producer
    if producer is None or producer.name in _OWN_MEMORY or _gets_unit_axis(value):
        return []
    sources = list(producer.inputs())
    if (
        producer.name == "tract_core_gather"
    ):  # the engine rewrites a gather of one element to a slice, which it moves before axes
        return sources[:1]
    if producer.name in IN_PLACE:
        return [v for v in sources if not is_broadcast(v.shape, value.shape)][:1]
    return sources


def _may_be_one(extent: Dim) -> bool:
    """Return False if the extent is an integer other than 1, or a multiple of an integer above 1."""
    if isinstance(extent, int):
        return extent == 1
    factor = extent.as_coeff_Mul()[0]
    return not (factor.is_Integer and factor > 1)


def _inserts(source: Shape, shape: Shape) -> bool:
    """Return whether this `reshape` may insert an axis of size 1, if only at some sizes."""
    before, after = list(source), list(shape)
    while before and after and same(before[0], after[0]):
        before, after = before[1:], after[1:]
    while before and after and same(before[-1], after[-1]):
        before, after = before[:-1], after[:-1]
    return (len(after) > 1 or not before) and any(map(_may_be_one, after))


def is_single_concat(operation: Operation) -> bool:
    """Return whether this is a `concat` of one value, which is a barrier where the engine keeps it."""
    return operation.name == "concat" and len(list(operation.inputs())) == 1


def changes_axes(value: Value) -> bool:
    """Return whether an operator that inserts, removes or merges axes can be moved directly before the readers."""
    return any(made.name in _CHANGE_AXES for _, made in _origins(value))


def results_of_scans(value: Value) -> Iterator[Value]:
    """Yield the results of scans that a reader of `value` can be moved directly after."""
    return (origin for origin, producer in _origins(value) if producer.name == "tract_core_scan")


def is_sequence(value: Value) -> bool:
    """Return whether a `reshape` of `value` can be moved directly after the sequence output of a scan."""
    return any(result.producer and _is_full(result, result.producer) for result in results_of_scans(value))


def _is_full(value: Value, scan: Operation) -> bool:
    """Return whether a result of a scan has the rows of all its steps."""
    _, kind, *_ = scan.arguments["output"][scan.outputs.index(value)]
    return bool(kind == "full")


def is_sum_of_product(value: Value, rank: int = 0) -> bool:
    """Return whether a `reshape` of `value` can be moved directly after a sum in which a product is an operand.

    The product has at least this rank.
    """
    sums = (made for _, made in _origins(value) if made.name in ("add", "sub"))
    operands = (operand for operation in sums for operand in _origins(*operation.inputs()))
    return any(made.name in _PRODUCTS and operand.rank >= rank for operand, made in operands)


def is_sum_of_points(value: Value) -> bool:
    """Return whether a `reshape` of `value` can be moved directly after a sum with a convolution of one element."""
    sums = (made for _, made in _origins(value) if made.name in ("add", "sub"))
    return any(_is_pointwise(made) for operation in sums for _, made in _origins(*operation.inputs()))


def _is_pointwise(operation: Operation) -> bool:
    return operation.name == "conv" and all(size == 1 for size in operation.arguments["filter"].shape[2:])


def times_zero() -> Propagated:
    """Return the property that a value is, element by element, a product with zeros, of which the engine keeps one.

    The sum with a value of the whole shape has all elements again.
    """

    def sources(value: Value) -> list[Value]:
        return list(_FOLLOW_RESHAPE(value.producer)) if value.producer else []

    def rule(value: Value, source_flags: Sequence[bool]) -> bool:
        made = value.producer
        if made is not None and made.name == "mul" and any(map(is_zero, made.arguments.values())):
            return True
        full_sources = [
            source
            for source, lost in zip(sources(value), source_flags, strict=True)
            if not lost and source.shape == value.shape
        ]
        return any(source_flags) and not (full_sources and made is not None and made.name in BROADCASTING)

    return Propagated(sources, rule)


def is_zero(operand: Operand) -> bool:
    """Return whether an operand is 0, or a weight of zeros in whatever shape."""
    if not isinstance(operand, Value):
        return operand == 0
    origin = origin_of_elements(operand)
    weight = origin.weight
    return weight is not None and origin.dtype.kind == "f" and not any(any(chunk) for chunk in weight.chunks())


def origin_of_elements(value: Value) -> Value:
    """Return the value whose elements operators that only move, repeat or cast them give to this one."""
    while value.weight is None and value.producer is not None and value.producer.name in KEEP_ELEMENTS:
        source = next(iter(value.producer.inputs()), None)  # none of a number
        if source is None:
            break
        value = source
    return value


def folds_batch(value: Value, other: Value) -> bool:
    """Return whether `value` is reshaped by merging axes into a batch axis on which `other` has extent 1."""
    operation = value.producer
    if operation is None or operation.name != "reshape":
        return False
    merged = merged_axis(next(iter(operation.inputs())).shape, value.shape)
    return merged is not None and merged < value.rank - 2 and same(other.shape[merged], 1)
