"""Convolutions, pools and products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import Value
from t2n_core.nnef.sizes.dims import product
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.forms.quotients import in_float64
from t2n_core.nnef.tract.forms.slices import with_written_sizes


def conv(
    g: TractBuilder, input: Value, filter: Value, *args: Any, out: Expected | None = None, **attributes: Any
) -> Value:
    """Write a convolution; a channel count written differently from the filter's is sliced to the filter's."""
    channels = filter.shape[1] * attributes.get("groups", 1)
    if input.shape[1] != channels:
        input = g.slice(input, axes=[1], begin=[0], end=[channels])
    return with_written_sizes(g, g.one("conv", input, filter, *args, out=out, **attributes))


def _pool(operator: str) -> Callable[..., Value]:
    def pool(g: TractBuilder, input: Value, **attributes: Any) -> Value:
        """Write a pool, whose result has the written sizes; a mean is a product with a reciprocal."""
        if g.node.exact and attributes.get("normalize"):
            return in_float64(g, input, lambda wide: with_written_sizes(g, g.one(operator, wide, **attributes)))
        return with_written_sizes(g, g.one(operator, input, **attributes))

    return pool


def product_of_merged(g: TractBuilder, x: Value, w: Value) -> Value:
    """Return `x` [..., I] times `w` [O, I] as one product, with all leading axes merged."""
    lead = x.shape[:-1]
    flat = g.reshape_to(x, (product(lead), x.shape[-1]))
    return g.reshape_to(g.matmul(flat, w, transposeB=True), (*lead, w.shape[0]))


FORMS: dict[str, Callable[..., Value]] = {
    "conv": conv,
    **{operator: _pool(operator) for operator in ("max_pool", "avg_pool", "box")},
}
