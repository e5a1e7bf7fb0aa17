"""New tensors. Those of fixed size are folded before lowering; these have dynamic sizes or depend on an input."""

from __future__ import annotations

import sympy

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import INT64, Value
from t2n_core.nnef.sizes.dims import Dim
from t2n_core.op.promote import Tensorlike, number, operand, tensor
from t2n_core.op.registry import op


def full_of(g: Emitter, element: Tensorlike) -> Value:
    """Return a tensor of the captured shape, filled with a scalar or with the single element of a tensor."""
    expected = g.output
    if isinstance(element, Value | sympy.Expr):
        scalar = g.lift(tensor(g, element, expected.dtype), len(expected.shape))
        return g.expand(scalar, expected.shape)
    return g.fill(number(element, expected.dtype), expected.shape, expected.dtype)


@op("aten::zeros", "aten::empty.memory_format", "aten::empty_strided", "prims::empty_permuted",
    implied=("size", "dtype", "stride", "shape", "physical_layout"))  # fmt: skip
def zeros(g: Emitter) -> Value:
    """Return zeros; `empty` may hold anything, so zeros serve it too."""
    return full_of(g, 0)


@op("aten::ones", implied=("size", "dtype"))
def ones(g: Emitter) -> Value:
    return full_of(g, 1)


@op("aten::full", implied=("size", "dtype"))
def full(g: Emitter, fill_value: Tensorlike) -> Value:
    return full_of(g, fill_value)


@op("prims::full", implied=("shape", "dtype"))
def prims_full(g: Emitter, fill_value: Tensorlike) -> Value:
    return full_of(g, fill_value)


@op("aten::zeros_like", "aten::empty_like", "aten::new_zeros", "aten::new_empty", "aten::new_empty_strided",
    "aten::zero", implied=("self", "size", "dtype", "stride"))  # fmt: skip
def zeros_like(g: Emitter) -> Value:
    return full_of(g, 0)


@op("aten::ones_like", "aten::new_ones", implied=("self", "size", "dtype"))
def ones_like(g: Emitter) -> Value:
    return full_of(g, 1)


@op("aten::full_like", "aten::new_full", implied=("self", "size", "dtype"))
def full_like(g: Emitter, fill_value: Tensorlike) -> Value:
    return full_of(g, fill_value)


@op("aten::fill", implied=("self",))
def fill(g: Emitter, value: Tensorlike) -> Value:
    return full_of(g, value)


@op("prims::fill", implied=("self",))
def prims_fill(g: Emitter, value: Tensorlike) -> Value:
    return full_of(g, value)


@op("aten::copy", implied=("self", "non_blocking"))
def copy(g: Emitter, src: Value) -> Value:
    """`src` in the dtype and shape of the tensor that it overwrites."""
    value = g.lift(g.cast(src, g.output.dtype), len(g.output.shape))
    return g.expand(value, g.output.shape)


@op("aten::scalar_tensor", "prims::scalar_tensor", implied=("dtype",))
def scalar_tensor(g: Emitter, s: Tensorlike) -> Value:
    return tensor(g, s, g.output.dtype)


@op("aten::arange", implied=("end", "dtype"))
def arange(g: Emitter, start: Tensorlike = 0, step: Tensorlike = 1) -> Value:
    """start + i * step, in the widest float or int64, then rounded once."""
    dtype = g.output.dtype
    exact = g.widest if dtype.kind == "f" else INT64
    indices = g.cast(g.positions(g.output.shape[0]), exact)
    return g.cast(_line(g, indices, start, step), dtype)


@op("prims::iota", implied=("length", "dtype"))
def iota(g: Emitter, start: Dim, step: Dim) -> Value:
    return g.cast(_line(g, g.positions(g.output.shape[0]), start, step), g.output.dtype)


def _line(g: Emitter, indices: Value, start: Tensorlike, step: Tensorlike) -> Value:
    scaled = indices if step == 1 else g.mul(indices, operand(g, step, indices.dtype))
    return scaled if start == 0 else g.add(scaled, operand(g, start, indices.dtype))


@op("aten::eye", implied=("dtype",))
def eye(g: Emitter, n: Dim, m: Dim | None = None) -> Value:
    """1 where row and column are equal, 0 elsewhere."""
    rows = g.unsqueeze(g.positions(n), axes=[1])
    columns = g.unsqueeze(g.positions(n if m is None else m), axes=[0])
    return g.cast(g.eq(rows, columns), g.output.dtype)


@op("aten::linspace", implied=("dtype",))
def linspace(g: Emitter, start: Tensorlike, end: Tensorlike, steps: Dim) -> Value:
    """Return evenly spaced values, computed from both ends towards the middle as PyTorch does."""
    if isinstance(steps, int) and steps == 1:
        return g.reshape_to(tensor(g, start, g.output.dtype), [1])
    first, last = tensor(g, start, g.widest), tensor(g, end, g.widest)
    index = g.cast(g.positions(steps), g.widest)
    back = g.sub(g.size(_less_one(steps), g.widest), index)
    step = g.div(g.sub(last, first), g.size(_less_one(steps), g.widest))
    near = g.lt(index, back)
    value = g.select(near, g.add(g.mul(index, step), first), g.sub(last, g.mul(back, step)))
    return g.cast(value, g.output.dtype)


def _less_one(steps: Dim) -> Dim:
    return steps - 1
