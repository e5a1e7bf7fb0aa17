"""Batch norms folded into weights: operations over the weights of both, which the engine runs once."""

from __future__ import annotations

import math
from collections.abc import Callable

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op.weights import in_shape
from t2n_core.torch_graph.graph.ir import FoldedNorm, TensorVariable


def fold_norm(g: Emitter, recipe: FoldedNorm, value_of: Callable[[TensorVariable], Value]) -> Value:
    """Return filter * s, or (bias - mean) * s + beta, with s = gamma / sqrt(var + eps).

    Both are slices of one product with s: some releases of tract (SHARED_ARE_KEPT in `nnef/tract/constants.py`)
    recompute what depends on a large constant at every run if several operations that are not slices read it.
    """
    gamma = None if recipe.weight is None else value_of(recipe.weight)
    factor = scale_of_norm(g, gamma, value_of(recipe.var), recipe.eps)
    filters, mean = value_of(recipe.filter), value_of(recipe.mean)
    shift = g.neg(mean) if recipe.start is None else g.sub(value_of(recipe.start), mean)
    count, size = filters.shape[0], math.prod(int(extent) for extent in filters.shape[1:])
    rows = g.concat([in_shape(g, filters, [count, size]), in_shape(g, shift, [count, 1])], axis=1)
    scaled = g.mul(rows, in_shape(g, factor, [count, 1]))
    if recipe.is_filter:
        return g.reshape_to(g.slice(scaled, axes=[1], begin=[0], end=[size]), filters.shape)
    shift = g.reshape_to(g.slice(scaled, axes=[1], begin=[size], end=[size + 1]), [count])
    return shift if recipe.bias is None else g.add(shift, value_of(recipe.bias))


def scale_of_norm(g: Emitter, weight: Value | None, running_var: Value, eps: float) -> Value:
    """Return weight / sqrt(var + eps), one scale per channel."""
    inverse = g.rsqrt(g.add(running_var, eps))
    return inverse if weight is None else g.mul(inverse, weight)
