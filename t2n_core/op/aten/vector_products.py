"""Products of vectors and powers of matrices."""

from __future__ import annotations

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import BOOL, Value
from t2n_core.nnef.sizes.dims import product
from t2n_core.op.aten.index import gather_axis
from t2n_core.op.aten.matmul import rows_product
from t2n_core.op.aten.reduction import norm_of
from t2n_core.op.promote import Tensorlike, tensor
from t2n_core.op.registry import op


@op("aten::inner")
def inner(g: Emitter, self: Value, other: Value) -> Value:
    """Sum products over the last axis of both; a scalar scales the other operand."""
    if not self.rank or not other.rank:
        return g.mul(self, other)
    left, right = (g.reshape_to(v, [product(v.shape[:-1]), v.shape[-1]]) for v in (self, other))
    return g.reshape_to(rows_product(g, left, right), g.output.shape)


@op("aten::addr")
def addr(g: Emitter, self: Value, vec1: Value, vec2: Value, beta: Tensorlike = 1, alpha: Tensorlike = 1) -> Value:
    """beta * self + alpha * (vec1 as a column times vec2 as a row); `self` may hold NaN where beta is 0."""
    dtype = g.output.dtype
    column, row = g.unsqueeze(vec1, axes=[1]), g.unsqueeze(vec2, axes=[0])
    if dtype == BOOL:
        table = g.and_(column, row)
        table = table if alpha else g.and_(table, g.not_(table))
        return g.or_(g.expand(g.lift(self, 2), table.shape), table) if beta else table
    table = g.mul(column, row)
    # engines simplify 0 * x to 0, also where x is NaN
    scaled = g.sub(table, table) if alpha == 0 else g.mul(table, tensor(g, alpha, dtype))
    out = table if alpha == 1 else scaled
    if beta == 0:
        return out
    return g.add(self if beta == 1 else g.mul(self, tensor(g, beta, dtype)), out)


@op("aten::pdist", "aten::_pdist_forward")
def pdist(g: Emitter, self: Value, p: float = 2.0) -> Value:
    """Return norms of the differences of all pairs of rows, the first before the second."""
    count = self.shape[0]
    if not isinstance(count, int):
        raise g.fail("the pairs of a dynamic number of rows cannot be expressed in NNEF")
    first, second = np.triu_indices(count, k=1)
    pairs = [gather_axis(g, self, g.constant(rows.astype(np.int64)), 0) for rows in (first, second)]
    return g.squeeze(norm_of(g, g.sub(pairs[0], pairs[1]), [1], float(p)), axes=[1])
