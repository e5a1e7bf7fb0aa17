"""Operators that read weights in 4-bit blocks, for targets that store some that way; convolutions need no rule."""

from __future__ import annotations

from collections.abc import Sequence

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import FLOAT32, INT64, Value
from t2n_core.op.aten import index, matmul
from t2n_core.op.aten.index import non_negative_index
from t2n_core.op.registry import op
from t2n_core.op.stored.writing import blocks_of
from t2n_core.torch_graph.graph.ir import TorchOp


@op("aten::linear", target="tract", option="weights", needs=("tract_core_einsum",))
def linear(g: Emitter, input: Value, weight: Value, bias: Value | None = None) -> Value:
    """Return the product with the weight as first operand, which all releases take; float16 is computed in float32."""
    blocks = blocks_of(g, weight)
    if blocks is None:
        return matmul.linear(g, input, weight, bias)
    x = g.lift(g.cast(input, FLOAT32), 2)
    batch = "abcdefgh"[: x.rank - 1]
    shape = (*x.shape[:-1], weight.shape[0])
    expression = f"ok,{batch}k->{batch}o"
    out = g.tract_core_einsum([blocks, x], expr=expression, acc="f32", out=Expected(shape, FLOAT32))
    out = g.reshape_to(out, g.output.shape)
    if bias is not None:
        out = g.add(out, g.cast(bias, FLOAT32))
    return g.cast(out, input.dtype)


@op("aten::embedding", target="tract", option="weights", implied=("padding_idx", "scale_grad_by_freq", "sparse"))
def embedding(g: Emitter, weight: Value, indices: Value) -> Value:
    blocks = blocks_of(g, weight)
    if blocks is None:
        return index.embedding(g, weight, indices)
    return g.cast(_rows(g, blocks, g.cast(indices, INT64)), g.output.dtype)


@op("aten::index.Tensor", target="tract", option="weights")
def index_of_matrices(g: Emitter, self: Value, indices: Sequence[Value | None], node: TorchOp) -> Value:
    """Return the matrices of experts that a tensor of indices picks."""
    blocks = blocks_of(g, self)
    if blocks is None:
        return index.index(g, self, indices, node)
    (picks,) = indices
    assert picks is not None
    return g.reshape_to(_rows(g, blocks, non_negative_index(g, picks, self.shape[0])), g.output.shape)


def _rows(g: Emitter, blocks: Value, indices: Value) -> Value:
    """Return rows read from the blocks, with the dtype of the result as an argument (which 0.21.11 needs)."""
    shape = (*indices.shape, blocks.shape[1])
    return g.tract_core_gather(blocks, indices, axis=0, datum_type="f32", out=Expected(shape, FLOAT32))
