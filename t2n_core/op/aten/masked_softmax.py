"""Softmax over the keys that a mask allows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import BOOL, Value
from t2n_core.nnef.sizes.dims import Dim
from t2n_core.op.weights import constant_values

LOWEST = float(np.finfo(np.float32).min)


def masked_softmax(g: Emitter, scores: Value, allowed: Value | None, *, no_masked_row: bool = False) -> Value:
    """Return the softmax over the allowed elements of the last axis; a fully masked row is zero, as in PyTorch.

    `no_masked_row` states that there is no such row: the mask is then added as a bias, computed once for all layers
    that share it.
    """
    if allowed is None:
        return g.softmax(scores, axes=[scores.rank - 1])
    if no_masked_row:
        return masked_softmax(g, g.add(scores, bias_of_mask(g, allowed, scores.dtype)), None)
    number = g.cast(allowed, g.truth_dtype)
    is_open = g.ne(g.max_reduce(number, axes=[allowed.rank - 1]), 0)
    zero = g.constant(np.zeros((1,) * allowed.rank, scores.dtype))
    return _open_softmax(g, scores, g.select(allowed, zero, _floor(g, is_open, scores.dtype)), is_open)


def _open_softmax(g: Emitter, scores: Value, bias: Value, is_open: Value) -> Value:
    """Return the softmax of scores + bias in rows that are open, zero in others; their bias must be finite."""
    return g.mul(masked_softmax(g, g.add(scores, bias), None), g.cast(is_open, scores.dtype))


def _floor(g: Emitter, is_open: Value, dtype: np.dtype[Any]) -> Value:
    """Return the least bias of each row: minus infinity, or zero in a fully masked row, whose softmax would be NaN."""
    zero = g.constant(np.zeros((1,) * is_open.rank, dtype))
    return g.select(is_open, g.literal(-math.inf, dtype, is_open.rank), zero)


def bias_of_mask(g: Emitter, allowed: Value, dtype: np.dtype[Any]) -> Value:
    """Return zero where a mask allows attention, otherwise the lowest finite value."""
    constant, lowest = constant_values(allowed), float(np.finfo(dtype).min)
    if constant is not None:
        return g.constant(np.where(constant, 0.0, lowest).astype(dtype))
    zero = g.constant(np.zeros((1,) * allowed.rank, dtype))
    return g.select(allowed, zero, lowest)


def has_no_masked_row(g: Emitter, mask: Value) -> bool:
    """Return whether a mask is proven to have no fully masked row, one without a true or finite element."""
    return least_reached(g, mask) is not None


def least_reached(g: Emitter, mask: Value) -> float | None:
    """Return a number that each row of a mask is proven to reach, 0 for conditions; None if a row may be masked."""
    elements = constant_values(mask)
    if elements is None:
        return g.open_masks.get(mask)
    bias = np.where(elements, 0.0, -np.inf) if mask.dtype == BOOL else elements
    finite = np.where(np.isfinite(bias), bias, -np.inf)
    least = float(finite.max(axis=-1, initial=-np.inf).min(initial=np.inf))
    return None if least == -np.inf else least


def biased_softmax(g: Emitter, scores: Value, mask: Value) -> Value:
    """Return the softmax of scores + mask. Minus infinity masks an element; a fully masked row becomes zero."""
    elements, dtype, last = constant_values(mask), scores.dtype, [mask.rank - 1]
    if has_no_masked_row(g, mask):
        bias = g.cast(mask, dtype) if elements is None else g.constant(_finite(elements, LOWEST))
        return masked_softmax(g, g.add(scores, bias), None)
    if elements is not None:
        is_masked = np.isneginf(elements).all(axis=-1, keepdims=True)
        finite = np.where(is_masked, 0.0, elements).astype(dtype)
        return _open_softmax(g, scores, g.constant(finite), g.constant(np.asarray(~is_masked)))
    mask = g.cast(mask, dtype)
    # the maximum of nothing but -inf is the lowest finite number in an engine, which the half of no finite number is
    is_open = g.gt(g.max_reduce(g.mul(mask, 0.5), axes=last), 0.75 * float(np.finfo(dtype).min))
    return _open_softmax(g, scores, g.max(mask, _floor(g, is_open, dtype)), is_open)


def powers_and_sums(g: Emitter, scores: Value, allowed: Value) -> tuple[Value, Value]:
    """Return numerators and denominators of the softmax over the allowed elements."""
    axes = [scores.rank - 1]
    scores = g.select(allowed, scores, LOWEST)
    powers = g.select(allowed, g.exp(g.sub(scores, g.max_reduce(scores, axes=axes))), 0.0)
    # one operation at any length, as in the engine's own softmax: float64 would cost a copy of all scores
    return powers, g.one("sum_reduce", powers, axes=axes)


def _finite(mask: np.ndarray, masked: float) -> np.ndarray:
    return np.where(np.isneginf(mask), np.float32(masked), mask.astype(np.float32))


def causal_mask(g: Emitter, rows: Dim, columns: Dim) -> Value:
    """Return a mask [rows, columns], true where the column is not after the row."""
    if isinstance(rows, int) and isinstance(columns, int):
        return g.constant(np.tril(np.ones((rows, columns), dtype=np.bool_)))
    down = g.unsqueeze(g.positions(rows), axes=[1])
    return g.ge(down, g.unsqueeze(g.positions(columns), axes=[0]))
