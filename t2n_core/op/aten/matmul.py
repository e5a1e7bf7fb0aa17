"""Matrix products: the engine's `matmul` wants operands of equal rank."""

from __future__ import annotations

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op.aten.reduction import norm_of
from t2n_core.op.promote import Tensorlike, operand
from t2n_core.op.registry import op


@op("aten::linear")
def linear(g: Emitter, input: Value, weight: Value, bias: Value | None = None) -> Value:
    """x @ weight.T + bias; x of any rank, weight [out, in] or [in]."""
    if weight.rank == 1:
        out = g.reshape_to(matmul(g, input, weight), g.output.shape)
    elif input.rank == 1:
        out = g.squeeze(g.matmul(g.lift(input, 2), weight, transposeB=True), axes=[0])
    else:
        out = g.stacked_product(input, weight)
    return out if bias is None else g.add(out, bias)


@op("aten::matmul", "aten::mm", "aten::bmm", "aten::mv", "aten::dot", "aten::vdot")
def matmul(g: Emitter, self: Value, other: Value | None = None, mat2: Value | None = None, vec: Value | None = None,
           tensor: Value | None = None) -> Value:  # fmt: skip
    """Return the product of matrices or vectors; the axis that makes a vector a matrix is dropped afterwards."""
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
    out = g.matmul(left, right) if left.dtype.kind == "f" else _integer_product(g, left, right)
    return g.squeeze_axes(out, [rank + axis for axis in drop])


def _integer_product(g: Emitter, left: Value, right: Value) -> Value:
    """Return the sum of elementwise products: the engine's matmul of integers fails or aborts."""
    rank = left.rank
    products = g.mul(g.unsqueeze(left, axes=[rank]), g.unsqueeze(right, axes=[rank - 2]))
    return g.squeeze(g.sum_reduce(products, axes=[rank - 1]), axes=[rank - 1])


@op("aten::addbmm")
def addbmm(g: Emitter, self: Value, batch1: Value, batch2: Value, beta: Tensorlike = 1, alpha: Tensorlike = 1) -> Value:
    """beta * self + alpha * (the sum of the batch's products)."""
    total = g.squeeze(g.sum_reduce(g.matmul(batch1, batch2), axes=[0]), axes=[0])
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
