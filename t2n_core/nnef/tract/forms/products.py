"""Products of matrices that a graph repeats, such as the keys and values of grouped heads."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any, NamedTuple

from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import FLOAT16, FLOAT32, Value
from t2n_core.nnef.shapes import infer
from t2n_core.nnef.sizes.dims import Dim, as_dim, is_static, product, same
from t2n_core.nnef.tract.builder import TractBuilder


class _Repeats(NamedTuple):
    """The last axis of a stack of matrices: `distinct` matrices, each repeated `times` in a row."""

    distinct: Dim
    times: Dim


def matmul(g: TractBuilder, A: Value, B: Value, **transposes: Any) -> Value:  # noqa: N803
    """Write a product so that its matrices are not repeated.

    Where each matrix of `B` is repeated several times in a row, the rows to multiply by it become one matrix of `A`:
    [b, n*t, s, d] times [b, n*t, d, k] is [b, n, t*s, d] times [b, n, d, k], reshaped. `transposes` are the
    attributes `transposeA` and `transposeB`.
    """
    repeats = None if transposes.get("transposeA") or A.rank != B.rank else _repeats(B)
    if repeats is None or not same(A.shape[-3], B.shape[-3]):
        return _write(g, A, B, **transposes)
    *stacks, heads, length, width = A.shape
    rows = g.reshape_to(A, (*stacks, repeats.distinct, as_dim(repeats.times * length), width))
    stacked = _product(g, rows, _without_repeats(g, B), **transposes)
    return g.reshape_to(stacked, (*stacked.shape[:-3], heads, length, stacked.shape[-1]))


def _product(g: TractBuilder, rows: Value, once: Value, *, transposeB: bool = False) -> Value:  # noqa: N803
    """Return the product of a few rows and long matrices, written so that the engine knows which are the long ones.

    It processes the rows of the first operand by the dozen, and swaps the operands only if it can prove which is
    longer.
    """
    producer = once.producer
    is_turned = producer is not None and producer.name == "transpose" and _turns_matrices(producer.arguments["axes"])
    if is_static((rows.shape[-2], *once.shape[-2:])) or transposeB == is_turned:
        return _write(g, rows, once, transposeB=transposeB)
    keys = next(producer.inputs()) if producer is not None and is_turned else once
    last = keys.rank - 1
    return g.permute(_write(g, keys, rows, transposeB=True), [*range(last - 1), last, last - 1])


def _write(g: TractBuilder, A: Value, B: Value, *, transposeA: bool = False, transposeB: bool = False) -> Value:  # noqa: N803
    """Write a plain product; operands that were cast from float16 for it stay float16 where that is fast."""
    transposes: dict[str, Any] = {
        name: True for name, is_on in (("transposeA", transposeA), ("transposeB", transposeB)) if is_on
    }
    first, other = (_float16(g, value) for value in (A, B))
    is_stack = A.rank == B.rank and all(same(a, b) for a, b in zip(A.shape[:-2], B.shape[:-2], strict=True))
    if not is_stack or (first is A and other is B):
        return g.one("matmul", A, B, **transposes)
    stacks = string.ascii_lowercase[: A.rank - 2]
    left, right = f"{stacks}{'zx' if transposeA else 'xz'}", f"{stacks}{'yz' if transposeB else 'zy'}"
    shape = infer("matmul", {"A": A, "B": B, **transposes})[0]
    expression = f"{left},{right}->{stacks}xy"
    return g.tract_core_einsum([first, other], expr=expression, acc="f32", out=Expected(shape, FLOAT32))


def _float16(g: TractBuilder, value: Value) -> Value:
    """Return the computed float16 value that a value was cast to float32 from; the value itself if there is none."""
    made = value.producer
    if made is None or made.name != "tract_core_cast" or not g.traits.multiplies_float16_by_float32:
        return value
    source = next(made.inputs())
    return source if source.dtype == FLOAT16 and not g.facts.is_constant(source) else value


def attention(g: TractBuilder, q: Value, k: Value, v: Value, **attributes: Any) -> Value:
    """Write the engine's attention, in which query heads share keys and values that are not repeated."""
    both = _repeats(k), _repeats(v)
    if q.rank == 4 and both[0] is not None and both[0] == both[1]:
        k, v = _without_repeats(g, k), _without_repeats(g, v)
    return g.one("tract_transformers_sdpa", q, k, v, **attributes)


def _repeats(value: Value) -> _Repeats | None:
    """Return how a stack of matrices repeats them; None if it does not, or not on its last axis."""
    producer = value.producer
    if producer is None or value.rank < 3:
        return None
    if producer.name == "tile":
        (source,) = producer.inputs()
        *stacks, times, rows, columns = producer.arguments["repeats"]
        is_alone = all(same(repeat, 1) for repeat in (*stacks, rows, columns))
        return _Repeats(1, times) if is_alone and same(source.shape[-3], 1) else None
    if producer.name == "reshape":
        (source,) = producer.inputs()
        return _repeats_of_merge(source, value)
    if producer.name == "tract_core_cast" or (
        producer.name == "transpose" and _turns_matrices(producer.arguments["axes"])
    ):
        return _repeats(next(producer.inputs()))
    return None


def _repeats_of_merge(source: Value, value: Value) -> _Repeats | None:
    """Return the repeats of a reshape that merges the last axes of a stack and leaves the matrices unchanged."""
    repeats = _repeats(source)
    if repeats is None or not all(same(a, b) for a, b in zip(source.shape[-2:], value.shape[-2:], strict=True)):
        return None
    for first in range(source.rank - 3, -1, -1):
        others = product(source.shape[first:-3])
        if same(others * source.shape[-3], value.shape[-3]):
            return _Repeats(as_dim(others * repeats.distinct), repeats.times)
    return None


def _turns_matrices(axes: list[int]) -> bool:
    """Return whether a transpose swaps the last two axes and no others."""
    last = len(axes) - 1
    return axes == [*range(last - 1), last, last - 1]


def _without_repeats(g: TractBuilder, value: Value) -> Value:
    """Return a stack with each distinct matrix once."""
    producer, repeats = value.producer, _repeats(value)
    assert producer is not None
    assert repeats is not None
    source = next(producer.inputs())
    if producer.name == "tile":
        return source
    once = _without_repeats(g, source)
    if producer.name == "transpose":
        return g.permute(once, producer.arguments["axes"])
    if producer.name == "tract_core_cast":
        return g.cast(once, value.dtype)
    if once.producer is not None and once.producer.name == "unsqueeze":
        once = next(once.producer.inputs())  # the axis that was repeated
    return g.reshape_to(once, (*value.shape[:-3], repeats.distinct, *value.shape[-2:]))


FORMS: dict[str, Callable[..., Value]] = {"matmul": matmul, "tract_transformers_sdpa": attention}
