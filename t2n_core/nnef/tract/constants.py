"""Constants in tract: which are folded before the first run, which are recomputed at every run, and what to write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from packaging.version import Version

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.nnef.releases import Releases
from t2n_core.nnef.sizes.dims import product
from t2n_core.nnef.tract.propagated import Propagated

BARRIER: Final = "tract_core_trilu"
"""The operator that no rewrite of the engine crosses, from 0.20 on; see `barriers`."""
BARRIERS: Final = frozenset({BARRIER, "tract_core_gather"})
"""The operators that `barriers` writes instead of a `concat`."""

# --------------------------------------------------------------------------------------------------- limits by release
LARGEST_FOLDED: Final = {Releases.of("0.23.0", "0.23.5"): 1 << 18, Releases.of("0.23.5"): 1 << 20}
"""A tensor computed from constants alone is recomputed at every run if it has more elements of float32 (1 MiB, 4 MiB)
and is larger than its inputs. Releases that are not listed compute constants of any size once."""

SHARED_FROM: Final = 1024
SHARED_ARE_KEPT: Final = Releases.of("0.21.11", "0.23.5")
"""A constant with at least SHARED_FROM elements and several non-slice consumers is not folded into them: they, and
everything computed from them, run at every call. Equal constants count as one, such as a new norm's. 0.23.4, which
has no wheel, has the same source code here as 0.23.3."""

SCANS_REPACK: Final = Releases.of("0.21", "0.23.0")
"""Inside the body of a scan only variables are constants; a tensor computed from one outside the body is re-packed in
every step."""

_LARGE_FILTER: Final = 1 << 20
"""Elements of a filter from which on the time of a norm after it is negligible."""


def folds_norm(version: Version, channels: int, elements: int) -> bool:
    """Return whether a filter of these sizes is multiplied by the scale of a norm before the first run.

    Otherwise every run would recompute a large filter. A small one costs little.
    """
    return version not in SHARED_ARE_KEPT or channels < SHARED_FROM or elements < _LARGE_FILTER


# ------------------------------------------------------------------------------------------------ properties of values
def is_constant() -> Propagated:
    """Return the property of being a weight, or computed from weights alone, which the engine folds into a weight."""
    return Propagated(_sources, _is_from_weights)


def is_folded() -> Propagated:
    """Return the property of constants whose dynamic shape the engine may drop: no barrier comes before them."""

    def rule(value: Value, properties: Sequence[bool]) -> bool:
        is_barrier = value.producer is not None and value.producer.name in BARRIERS
        return not is_barrier and _is_from_weights(value, properties)

    return Propagated(_sources, rule)


def _is_from_weights(value: Value, properties: Sequence[bool]) -> bool:
    return value.weight is not None or (bool(properties) and all(properties))


def _sources(value: Value) -> list[Value]:
    made_here = value.weight is None and value.producer is not None
    return list(value.producer.inputs()) if made_here and value.producer else []


# ------------------------------------------------------------------------------------------------------- lowerings
def widen(g: Emitter, weight: Value) -> Value:
    """Return a weight of float16 or int8 as float32, in pieces that the engine computes before the first run."""
    elements = int(product(weight.shape))
    limit = next((most for releases, most in LARGEST_FOLDED.items() if g.spec.version in releases), elements)
    if elements <= limit:
        return g.tract_core_cast(weight, to="f32", out=Expected(weight.shape, FLOAT32))
    extents = [int(extent) for extent in weight.shape]
    axis = extents.index(max(extents))
    step = max(1, limit * extents[axis] // elements)
    pieces = []
    for begin in range(0, extents[axis], step):
        piece = g.take(weight, axis, begin, min(begin + step, extents[axis]))
        pieces.append(g.tract_core_cast(piece, to="f32", out=Expected(piece.shape, FLOAT32)))
    return g.concat(pieces, axis=axis)


def as_computed(g: Emitter, constant: Value, source: Value) -> Value:
    """Return a constant plus a zero that is computed from `source`, for a scan over the rows of the constant.

    Old releases pass the whole constant for each row.
    """
    axes = list(range(source.rank))
    first = g.squeeze(g.slice(source, axes=axes, begin=[0 for _ in axes], end=[1 for _ in axes]), axes=axes)
    first = first if first.dtype.kind == "f" else g.cast(first, FLOAT32)  # squares of integers may overflow
    zero = g.cast(g.lt(g.mul(first, first), 0.0), constant.dtype)
    return g.add(constant, zero)
