"""Layers whose weights are stored in blocks of 4 bits, where the target asks for that."""

from __future__ import annotations

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import FLOAT32, INT64, Value
from t2n_core.op.aten import index, matmul
from t2n_core.op.compression import Q40Weight
from t2n_core.op.effects import chosen
from t2n_core.op.registry import op
from t2n_core.op.weights import TensorWeight


def _blocks(g: Emitter, weight: Value, option: str) -> Value | None:
    """Return the weight as a variable of blocks, the effect of an option; None for an uncompressed one."""
    operation = weight.producer
    label = operation.arguments["label"] if operation is not None and operation.name == "variable" else ""
    if label not in g.compressed or not isinstance(weight.weight, TensorWeight):
        return None
    chosen(g, option)
    return g.variable(label, Q40Weight(weight.weight.tensor, g.block_layout()), form="q4_0")


@op("aten::linear", target="tract", option="weight_compression", needs=("tract_core_einsum",))
def linear(g: Emitter, input: Value, weight: Value, bias: Value | None = None) -> Value:
    """Return the product with the weight as first operand, which all releases take; float16 is computed in float32."""
    blocks = _blocks(g, weight, "weight_compression")
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


@op(
    "aten::embedding",
    target="tract",
    option="compresses_embeddings",
    implied=("padding_idx", "scale_grad_by_freq", "sparse"),
)
def embedding(g: Emitter, weight: Value, indices: Value) -> Value:
    """Return rows that are read out of the blocks, exactly as the engine is told the dtype of the result (0.21.11)."""
    blocks = _blocks(g, weight, "compresses_embeddings")
    if blocks is None:
        return index.embedding(g, weight, indices)
    shape = (*indices.shape, weight.shape[1])
    found = g.tract_core_gather(blocks, g.cast(indices, INT64), axis=0, datum_type="f32", out=Expected(shape, FLOAT32))
    return g.cast(found, weight.dtype)
