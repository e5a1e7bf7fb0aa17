"""Batch norms that are folded into weights: statements over the weights of both, which the engine runs once."""

from __future__ import annotations

from collections.abc import Callable

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op.weights import in_shape
from t2n_core.torch_graph.graph.ir import Normed, TensorVariable


def normed(g: Emitter, recipe: Normed, value_of: Callable[[TensorVariable], Value]) -> Value:
    """Return filter * s, or (bias - mean) * s + beta, with s = gamma / sqrt(var + eps)."""
    factor = scale_of_norm(
        g, None if recipe.weight is None else value_of(recipe.weight), value_of(recipe.var), recipe.eps
    )
    source = None if recipe.source is None else value_of(recipe.source)
    if recipe.is_filter:
        assert source is not None
        return g.mul(source, in_shape(g, factor, [source.shape[0], *(1 for _ in source.shape[1:])]))
    mean = value_of(recipe.mean)
    shift = g.mul(g.neg(mean) if source is None else g.sub(source, mean), factor)
    return shift if recipe.bias is None else g.add(shift, value_of(recipe.bias))


def scale_of_norm(g: Emitter, weight: Value | None, running_var: Value, eps: float) -> Value:
    """Return weight / sqrt(var + eps), a number for each channel."""
    inverse = g.rsqrt(g.add(running_var, eps))
    return inverse if weight is None else g.mul(inverse, weight)


__all__ = ["normed", "scale_of_norm"]
