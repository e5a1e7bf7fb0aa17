"""Matrix factorisations by loops over rows or columns, which run in the engine.

A step works on the whole matrix: what it must not touch is masked by comparing indices with the number of the step.
An element is picked by a sum of itself and zeros, which is exact. The operators are described where they are
declared, in `torch_graph/custom_ops/factorisation_steps.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from t2n_core.nnef.graph import FLOAT32, INT64, Value
from t2n_core.nnef.loop_emitter import LoopEmitter
from t2n_core.nnef.sizes.dims import Dim, as_dim, floor_div, minimum
from t2n_core.op import formulas
from t2n_core.op.registry import op
from t2n_core.torch_graph.custom_ops import factorisation_steps  # noqa: F401  declares the operators

Values: TypeAlias = list[Value]
SWEEPS = 12
"""Each squares the remaining products of different columns; for 500 random columns of float32, 12 are enough."""


_ORTHOGONAL = 1e-37
"""Sums of products up to which columns stay as they are: engines divide by a reciprocal, which must be finite."""


def _floats_along(g: LoopEmitter, count: Dim, rank: int, axis: int) -> Value:
    """Return 0, 1, … as floats along one axis of `rank`."""
    shape: list[Dim] = [1] * rank
    shape[axis] = count
    return g.reshape_to(g.cast(g.positions(count), FLOAT32), shape)


def _row_and_column_indices(g: LoopEmitter, a: Value) -> Values:
    """Return the row and column indices as floats, in the rank of the matrix."""
    return [_floats_along(g, a.shape[axis], a.rank, axis) for axis in (-2, -1)]


def _steps(g: LoopEmitter, count: Dim, a: Value) -> Value:
    return _floats_along(g, count, a.rank, 0)


def _pick(b: LoopEmitter, a: Value, here: Value, axis: int) -> Value:
    """Return the row or column of `a` where `here` is true, as an axis of one element."""
    return b.sum_reduce(b.select(here, a, 0.0), axes=[a.rank + axis])


def _row(b: LoopEmitter, value: Value) -> Value:
    return b.unsqueeze(value, axes=[0])


def _join_columns(g: LoopEmitter, rows: Value) -> Value:
    """Return the columns that the steps computed, [count, …, 1], side by side: […, count]."""
    return g.permute(g.squeeze(rows, axes=[rows.rank - 1]), [*range(1, rows.rank - 1), 0])


@op("t2n_loops::cholesky", target="tract")
def cholesky(g: LoopEmitter, a: Value) -> tuple[Value, Value]:
    """Subtract the products of the previous columns from each column, and stop at a pivot that is not positive."""

    def step(b: LoopEmitter, scanned: Values, states: Values, invariants: Values) -> tuple[Values, Values]:
        (k,), (a, goes_on), (rows, columns) = scanned, states, invariants
        here, mine = b.eq(rows, k), b.eq(columns, k)
        before = b.select(b.lt(columns, k), a, 0.0)
        products = b.mul(before, _pick(b, before, here, -2))
        old = _pick(b, a, mine, -1)
        column = b.sub(old, b.sum_reduce(products, axes=[a.rank - 1]))
        pivot = _pick(b, column, here, -2)
        runs = b.gt(goes_on, 0.0)
        pivot = b.select(runs, pivot, 0.0)
        goes_on = b.select(b.gt(pivot, 0.0), goes_on, 0.0)
        root = b.sqrt(pivot)
        factor = b.select(here, root, b.select(b.gt(rows, k), b.div(column, root), old))
        stopped = b.select(b.and_(here, runs), pivot, old)
        factor = b.select(b.gt(goes_on, 0.0), factor, stopped)
        return [b.select(mine, factor, a), goes_on], [_row(b, pivot)]

    runs = g.fill(1, (*a.shape[:-2], 1, 1), a.dtype)
    (factor, _), (pivots,) = g.loop(step, [_steps(g, a.shape[-1], a)], [a, runs], _row_and_column_indices(g, a))
    inverses = _join_columns(g, pivots)
    return factor, g.squeeze(inverses, axes=[inverses.rank - 2])


@op("t2n_loops::lu", target="tract")
def lu(g: LoopEmitter, a: Value) -> tuple[Value, Value]:
    """Exchange rows so that the largest element of a column, the first of equal ones, is its pivot; then eliminate."""

    def step(b: LoopEmitter, scanned: Values, states: Values, invariants: Values) -> tuple[Values, Values]:
        (k,), (a,), (rows, columns) = scanned, states, invariants
        here, mine, below = b.eq(rows, k), b.eq(columns, k), b.gt(rows, k)
        sizes = b.select(b.lt(rows, k), -1.0, formulas.absolute(b, _pick(b, a, mine, -1)))
        greatest = b.eq(sizes, b.max_reduce(sizes, axes=[a.rank - 2]))
        chosen = b.min_reduce(b.select(greatest, rows, _NOWHERE), axes=[a.rank - 2])
        chosen = b.select(b.eq(chosen, _NOWHERE), k, chosen)  # NaN are never the largest
        there = b.eq(rows, chosen)
        old, new = _pick(b, a, here, -2), _pick(b, a, there, -2)
        a = b.select(here, new, b.select(there, old, a))
        column, head = _pick(b, a, mine, -1), _pick(b, new, mine, -1)
        factors = b.select(b.eq(head, 0.0), column, b.div(column, head))
        factors = b.select(below, factors, 0.0)
        rest = b.sub(a, b.mul(factors, b.select(b.gt(columns, k), new, 0.0)))
        return [b.select(b.and_(mine, below), factors, rest)], [_row(b, b.add(chosen, 1.0))]

    count = minimum(*a.shape[-2:])
    (packed,), (pivots,) = g.loop(step, [_steps(g, count, a)], [a], _row_and_column_indices(g, a))
    numbers = _join_columns(g, pivots)
    return packed, g.cast(g.squeeze(numbers, axes=[a.rank - 2]), np.dtype(np.int32))


_NOWHERE = 1e9


@op("t2n_loops::order", target="tract")
def order(g: LoopEmitter, pivots: Value, rows: Dim) -> Value:
    """Return the permutation of rows that the pivots' exchanges lead to."""

    def step(b: LoopEmitter, scanned: Values, states: Values, invariants: Values) -> tuple[Values, Values]:
        (k, row), (order,), (numbers,) = scanned, states, invariants
        chosen = b.squeeze(row, axes=[0])
        here, there = b.eq(numbers, k), b.eq(numbers, chosen)
        mine, partner = _pick(b, order, here, -1), _pick(b, order, there, -1)
        return [b.select(here, partner, b.select(there, mine, order))], []

    count = pivots.shape[-1]
    numbers = _floats_along(g, rows, pivots.rank, -1)
    chosen = g.sub(g.cast(pivots, FLOAT32), 1.0)
    chosen = g.permute(g.unsqueeze(chosen, axes=[pivots.rank]), [pivots.rank - 1, *range(pivots.rank - 1), pivots.rank])
    first = g.expand(numbers, (*pivots.shape[:-1], rows))
    (permutation,), _ = g.loop(step, [_floats_along(g, count, pivots.rank, 0), chosen], [first], [numbers])
    return g.cast(permutation, INT64)


@op("t2n_loops::solve", target="tract")
def solve(g: LoopEmitter, a: Value, b: Value, upper: bool, unit: bool) -> Value:
    """Subtract the multiples of each solved row from the remaining rows."""

    def step(body: LoopEmitter, scanned: Values, states: Values, invariants: Values) -> tuple[Values, Values]:
        (k,), (x,), (a, rows, columns) = scanned, states, invariants
        here = body.eq(rows, k)
        column = _pick(body, a, body.eq(columns, k), -1)
        row = _pick(body, x, here, -2)
        row = row if unit else body.div(row, _pick(body, column, here, -2))
        rest = body.sub(x, body.mul(column, row))
        left = (body.lt if upper else body.gt)(rows, k)
        return [body.select(here, row, body.select(left, rest, x))], []

    steps = _steps(g, a.shape[-1], a)
    (solution,), _ = g.loop(step, [steps], [b], [a, *_row_and_column_indices(g, a)], backwards=upper)
    return solution


@op("t2n_loops::reflections", target="tract")
def reflections(g: LoopEmitter, a: Value) -> tuple[Value, Value]:
    """Apply a Householder reflection for each column, to it and to all columns on its right."""

    def step(b: LoopEmitter, scanned: Values, states: Values, invariants: Values) -> tuple[Values, Values]:
        (k,), (a,), (rows, columns) = scanned, states, invariants
        here, below, mine = b.eq(rows, k), b.gt(rows, k), b.eq(columns, k)
        column = _pick(b, a, mine, -1)
        head, tail = _pick(b, column, here, -2), b.select(below, column, 0.0)
        size = b.sum_reduce(b.mul(tail, tail), axes=[a.rank - 2])
        length = b.sqrt(b.add(b.mul(head, head), size))
        done = b.eq(size, 0.0)  # then there is no reflection, and the result of the division by zero is not used
        new = b.select(done, head, b.select(b.lt(head, 0.0), length, b.neg(length)))
        scale = b.select(done, 0.0, b.div(b.sub(new, head), new))
        vector = b.select(done, 0.0, b.div(tail, b.sub(head, new)))
        reflector = b.select(here, 1.0, vector)
        product = b.sum_reduce(b.mul(b.select(b.gt(columns, k), a, 0.0), reflector), axes=[a.rank - 2])
        rest = b.sub(a, b.mul(b.mul(reflector, scale), product))
        packed = b.select(mine, b.select(here, new, b.select(below, vector, a)), rest)
        return [packed], [_row(b, scale)]

    count = minimum(*a.shape[-2:])
    (packed,), (scales,) = g.loop(step, [_steps(g, count, a)], [a], _row_and_column_indices(g, a))
    factors = _join_columns(g, scales)
    return packed, g.squeeze(factors, axes=[factors.rank - 2])


@op("t2n_loops::reflect", target="tract")
def reflect(g: LoopEmitter, packed: Value, scales: Value, other: Value, transpose: bool) -> Value:
    """Apply one reflection after the other: the last one first, unless Q is transposed."""

    def step(b: LoopEmitter, scanned: Values, states: Values, invariants: Values) -> tuple[Values, Values]:
        (k,), (x,), (packed, rows, columns, scales, places) = scanned, states, invariants
        column = _pick(b, packed, b.eq(columns, k), -1)
        # 0.21 and 0.22 evaluate what a body computes from constants alone for all steps at once: no `select` of 1 and 0
        vector = b.select(b.eq(rows, k), 1.0, b.select(b.gt(rows, k), column, 0.0))
        product = b.sum_reduce(b.mul(x, vector), axes=[x.rank - 2])
        scale = _pick(b, scales, b.eq(places, k), -1)
        return [b.sub(x, b.mul(b.mul(vector, scale), product))], []

    count = scales.shape[-1]
    scales = g.unsqueeze(scales, axes=[scales.rank - 1])
    invariants = [packed, *_row_and_column_indices(g, packed), scales, _floats_along(g, count, packed.rank, -1)]
    (reflected,), _ = g.loop(step, [_steps(g, count, packed)], [other], invariants, backwards=not transpose)
    return reflected


_Exchange: TypeAlias = Callable[[LoopEmitter, Value, Value, Value], Value]
"""(emitter of the body, matrix, indices of columns as a row, as a column) -> the matrix with reordered columns."""


def _by_places(b: LoopEmitter, x: Value, row: Value, column: Value) -> Value:
    places = b.cast(b.squeeze(row, axes=list(range(row.rank - 1))), INT64)
    return b.pick(x, places, x.rank - 1)


def _by_product(b: LoopEmitter, x: Value, row: Value, column: Value) -> Value:
    unit = b.constant(np.ones([1] * x.rank, x.dtype))
    return b.matmul(x, b.select(b.eq(column, row), unit, 0.0))


def _orthogonal(g: LoopEmitter, a: Value, rows: Dim, exchange: _Exchange) -> Value:
    """Rotate pairs of columns. A sweep pairs each column once with each other one; a step has pairs of all columns."""

    def step(b: LoopEmitter, scanned: Values, states: Values, invariants: Values) -> tuple[Values, Values]:
        (partners, side), (a,), (counted, numbers) = scanned, states, invariants
        other = exchange(b, a, partners, numbers)
        x, y = b.select(counted, a, 0.0), b.select(counted, other, 0.0)
        squared_norm, product = (b.sum_reduce(b.mul(x, z), axes=[a.rank - 2]) for z in (x, y))
        twist = b.div(
            b.mul(b.sub(exchange(b, squared_norm, partners, numbers), squared_norm), side), b.mul(product, 2.0)
        )
        root = b.sqrt(b.add(b.mul(twist, twist), 1.0))
        tangent = b.recip(b.add(formulas.absolute(b, twist), root))
        tangent = b.select(b.lt(twist, 0.0), b.neg(tangent), tangent)
        small = b.lt(formulas.absolute(b, b.mul(product, side)), _ORTHOGONAL)
        tangent = b.select(small, 0.0, tangent)
        cosine = b.recip(b.sqrt(b.add(b.mul(tangent, tangent), 1.0)))
        sine = b.mul(b.mul(cosine, tangent), side)
        return [b.sub(b.mul(a, cosine), b.mul(other, sine))], []

    size = a.shape[-1]
    scanned = [g.reshape_to(v, [v.shape[0], *[1] * (a.rank - 2), size]) for v in _pairs(g, size)]
    counted = g.lt(_floats_along(g, a.shape[-2], a.rank, -2), g.lift(g.size(rows, FLOAT32), a.rank))
    (rotated,), _ = g.loop(step, scanned, [a], [counted, _floats_along(g, size, a.rank, -2)])
    return rotated


@op("t2n_loops::orthogonal", target="tract")
def orthogonal(g: LoopEmitter, a: Value, rows: Dim) -> Value:
    return _orthogonal(g, a, rows, _by_product)


@op("t2n_loops::orthogonal", target="tract", since="0.20.0")
def orthogonal_by_places(g: LoopEmitter, a: Value, rows: Dim) -> Value:
    """Pick the columns by index, for which older releases have no operator in a body."""
    return _orthogonal(g, a, rows, _by_places)


def _pairs(g: LoopEmitter, size: Dim) -> tuple[Value, Value]:
    """Return each column's partner in each step, and 1 if that is on its right, -1 if on its left, 0 without one.

    In step r of a sweep of m steps, columns i and j are paired where i + j = r (mod m), with m odd. A column that would
    be paired with itself is paired with column m, if there is one.
    """
    steps = as_dim(2 * floor_div(size - 1, 2) + 1)
    m, n = (g.lift(g.size(d, FLOAT32), 2) for d in (steps, size))
    number, i = _floats_along(g, as_dim(SWEEPS * steps), 2, 0), _floats_along(g, size, 2, 1)
    r = g.sub(number, g.mul(g.floor(g.div(g.add(number, 0.5), m)), m))
    apart = g.sub(r, i)
    j = g.select(g.lt(apart, 0.0), g.add(apart, m), apart)
    half = g.mul(r, 0.5)
    lone = g.select(g.eq(g.floor(half), half), half, g.add(half, g.mul(m, 0.5)))
    partner = g.select(g.eq(i, m), lone, g.select(g.eq(j, i), g.select(g.lt(m, n), m, i), j))
    side = g.sub(g.cast(g.gt(partner, i), FLOAT32), g.cast(g.lt(partner, i), FLOAT32))
    return partner, side
