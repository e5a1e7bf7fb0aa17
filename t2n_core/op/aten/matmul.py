"""Matrix products: the engine's `matmul` takes operands of equal rank."""

from __future__ import annotations

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT16, FLOAT32, INT64, Value
from t2n_core.op.aten.reduction import norm_of
from t2n_core.op.promote import Tensorlike, operand
from t2n_core.op.registry import op


@op("aten::linear")
def linear(g: Emitter, input: Value, weight: Value, bias: Value | None = None) -> Value:
    """x @ weight.T + bias; x of any rank, weight [out, in] or [in].

    Where float16 is accumulated in float32, the bias is part of the sum, and the result is rounded once.
    """
    if bias is not None and input.dtype == FLOAT16 and g.accumulator(FLOAT16) == FLOAT32:
        g.graph.effects.add("linear_accumulation_in_f32")
        wide = [g.cast(v, FLOAT32) for v in (input, weight, bias)]
        return g.cast(linear(g, *wide), FLOAT16)
    if weight.rank == 1:
        out = g.reshape_to(matmul(g, input, weight), g.output.shape)
    elif input.rank == 1:
        out = g.squeeze(rows_product(g, g.lift(input, 2), weight), axes=[0])
    elif input.dtype.kind != "f":
        out = rows_product(g, input, g.lift(weight, input.rank))
    else:
        out = g.stacked_product(input, weight)
    return out if bias is None else g.add(out, bias)


@op("aten::matmul", "aten::mm", "aten::bmm", "aten::mv", "aten::dot", "aten::vdot")
def matmul(g: Emitter, self: Value, other: Value | None = None, mat2: Value | None = None, vec: Value | None = None,
           tensor: Value | None = None) -> Value:  # fmt: skip
    """Return the product of matrices or vectors; the axis that turns a vector into a matrix is removed afterwards."""
    right = next(v for v in (other, mat2, vec, tensor) if v is not None)
    left, drop = self, []
    if left.rank == 1:
        left = g.unsqueeze(left, axes=[0])
        drop.append(-2)
    if right.rank == 1:
        right = g.unsqueeze(right, axes=[1])
        drop.append(-1)
    rank = max(left.rank, right.rank)
    left, right = g.lift(left, rank), g.lift(right, rank)
    return g.squeeze_axes(_product(g, left, right), [rank + axis for axis in drop])


def _product(g: Emitter, left: Value, right: Value) -> Value:
    """Return the product of matrices of equal rank."""
    if left.dtype.kind == "f":
        return g.matmul(left, right)
    return rows_product(g, left, g.permute(right, [*range(right.rank - 2), right.rank - 1, right.rank - 2]))


def rows_product(g: Emitter, left: Value, right: Value) -> Value:
    """Return the product of each row of one with each row of the other.

    Integers are multiplied elementwise and summed in int64, and the result wraps around as in PyTorch: the engine's
    own product fails or aborts, and its sums of narrow integers saturate.
    """
    if left.dtype.kind == "f":
        return g.matmul(left, right, transposeB=True)
    rank = left.rank
    wide = [g.cast(v, INT64) for v in (left, right)]
    products = g.mul(g.unsqueeze(wide[0], axes=[rank - 1]), g.unsqueeze(wide[1], axes=[rank - 2]))
    return g.cast(g.squeeze(g.sum_reduce(products, axes=[rank]), axes=[rank]), left.dtype)


@op("aten::addbmm")
def addbmm(g: Emitter, self: Value, batch1: Value, batch2: Value, beta: Tensorlike = 1, alpha: Tensorlike = 1) -> Value:
    """beta * self + alpha * (the sum of the batch's products)."""
    batch, rows, inner = batch1.shape
    left = g.reshape_to(g.permute(batch1, [1, 0, 2]), [rows, batch * inner])
    total = _product(g, left, g.reshape_to(batch2, [batch * inner, batch2.shape[2]]))
    scaled = total if alpha == 1 else g.mul(total, operand(g, alpha, total.dtype))
    if beta == 0:
        return scaled
    return g.add(scaled, self if beta == 1 else g.mul(self, operand(g, beta, total.dtype)))


@op("aten::bilinear")
def bilinear(g: Emitter, input1: Value, input2: Value, weight: Value, bias: Value | None = None) -> Value:
    """Return the sum over i and j of input1[i] * weight[o, i, j] * input2[j], for each output o."""
    left = g.unsqueeze(input1, axes=[input1.rank - 1, input1.rank])  # [… 1, 1, i]
    halfway = g.matmul(left, g.lift(weight, left.rank))  # [… o, 1, j]
    right = g.unsqueeze(input2, axes=[input2.rank - 1])  # [… 1, j]
    rows = g.squeeze(halfway, axes=[halfway.rank - 2])  # [… o, j]
    out = g.squeeze(g.sum_reduce(g.mul(rows, right), axes=[rows.rank - 1]), axes=[rows.rank - 1])
    return out if bias is None else g.add(out, bias)


@op("aten::cdist", "aten::_cdist_forward", implied=("compute_mode",))
def cdist(g: Emitter, x1: Value, x2: Value, p: float = 2.0) -> Value:
    """Return norms of the differences of all pairs of rows."""
    left, right = g.unsqueeze(x1, axes=[x1.rank - 1]), g.unsqueeze(x2, axes=[x2.rank - 2])
    difference = g.sub(left, right)
    axis = difference.rank - 1
    return g.squeeze(norm_of(g, difference, [axis], float(p)), axes=[axis])
