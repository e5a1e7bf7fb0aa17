"""The operation that stands for a barrier in each release."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from t2n_core.nnef.graph import FLOAT32
from t2n_core.nnef.sizes.dims import Dim, symbol
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.barriers import axes_barrier, barrier
from t2n_core.nnef.tract.emitter import TractEmitter
from tests.releases import NEWEST

T = symbol("T")
GATHER, TRILU = "tract_core_gather", "tract_core_trilu"


def written(version: str, shape: Sequence[Dim], axes: Sequence[int] | None = None) -> list[tuple[str, int | None]]:
    """Return the operators of a barrier, and their axes; it keeps shape and dtype."""
    g = TractEmitter(spec_for("tract", version))
    x = g.external("x", tuple(shape), FLOAT32)
    result = barrier(g, x) if axes is None else axes_barrier(g, x, axes)
    assert (result.shape, result.dtype) == (tuple(shape), FLOAT32)
    operations = [operation for operation in g.graph.operations if operation.name in (GATHER, TRILU, "concat")]
    return [(operation.name, operation.arguments.get("axis")) for operation in operations]


@pytest.mark.parametrize(
    ("version", "shape", "operator", "axis"),
    [
        ("0.19.15", (3, 5), GATHER, 0),
        ("0.19.15", (1, 7), GATHER, 1),
        ("0.19.15", (T, 4), GATHER, 0),
        ("0.20.0", (3, 5), TRILU, None),
        ("0.23.8", (3, 5), TRILU, None),
        (NEWEST, (3, 5), GATHER, 0),
        (NEWEST, (1, 7), TRILU, None),
        (NEWEST, (T, 4), TRILU, None),
    ],
)
def test_a_barrier_keeps_all_elements(version: str, shape: Sequence[Dim], operator: str, axis: int | None) -> None:
    """Rewrites of axes cross a `gather` along a later one."""
    assert written(version, shape) == [(operator, axis)]


@pytest.mark.parametrize(
    ("version", "shape", "operations"),
    [
        ("0.21.5", (2, 3, T, 4), [("concat", 2), ("concat", 3)]),
        ("0.23.8", (2, 3, 5, 4), [(TRILU, None)]),
        (NEWEST, (2, 3, 5, 4), [(GATHER, 2), (GATHER, 3)]),
        (NEWEST, (2, 3, 1, 4), [(TRILU, None)]),
        (NEWEST, (2, 3, T, 4), [(TRILU, None)]),
    ],
)
def test_a_barrier_of_axes(version: str, shape: Sequence[Dim], operations: list[tuple[str, int | None]]) -> None:
    """A stride crosses a `gather` along another axis than its own."""
    assert written(version, shape, [2, 3]) == operations
