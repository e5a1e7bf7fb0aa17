"""Proofs about the elements of values that a graph computes, and values for which there is no proof."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from t2n_core.nnef.dialects import emitter_for
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT32, INT64, Value
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.spec import spec_for
from t2n_core.op.known_elements import is_always_true, is_never_negative, least_of
from tests.releases import NEWEST

T = symbol("T")
INT32 = np.dtype(np.int32)


def built(make: Callable[[Emitter, Value], Value]) -> Value:
    g = emitter_for(spec_for("tract", NEWEST))
    g.declare_symbols(SizeRange.of(["T"]))
    x = g.external("x", (T, 3), INT64)
    g.begin("m", None, ())
    return make(g, x)


def doubled(g: Emitter, value: Value, times: int) -> Value:
    for _ in range(times):
        value = g.add(value, value)
    return value


@pytest.mark.parametrize(
    "make",
    [
        lambda g, x: g.positions(T),
        lambda g, x: g.size(T, INT64),
        lambda g, x: g.unsqueeze(g.add(g.positions(T), 4), axes=[0]),
        lambda g, x: g.add(g.positions(T), g.unsqueeze(g.size(T, INT64), axes=[0])),
        lambda g, x: g.argmax_reduce(x, axes=[1]),
        lambda g, x: g.constant(np.asarray([0, 7])),
        lambda g, x: g.select(g.gt(x, 0), g.argmax_reduce(x, axes=[1]), 2),
        lambda g, x: g.cast(g.gt(x, 0), INT64),
        lambda g, x: g.slice(g.positions(T), axes=[0], begin=[0], end=[1]),
    ],
)
def test_never_negative(make: Callable[[Emitter, Value], Value]) -> None:
    assert is_never_negative(built(make))


@pytest.mark.parametrize(
    "make",
    [
        lambda g, x: x,
        lambda g, x: g.abs(x),  # of the least integer
        lambda g, x: g.sub(g.positions(T), 1),
        lambda g, x: g.select(g.gt(x, 0), x, 2),
        lambda g, x: g.size(T - 2, INT64),
        lambda g, x: g.constant(np.asarray([0, -1])),
        lambda g, x: g.add(g.positions(T), (1 << 63) - 2),
        lambda g, x: g.mul(g.positions(T), 1 << 40),
        lambda g, x: doubled(g, g.positions(T), 63),
        lambda g, x: g.cast(g.constant(np.asarray([1 << 31])), INT32),
        lambda g, x: g.concat([g.positions(T), g.squeeze(g.slice(x, axes=[1], begin=[0], end=[1]), axes=[1])], axis=0),
    ],
)
def test_perhaps_negative(make: Callable[[Emitter, Value], Value]) -> None:
    assert not is_never_negative(built(make))


def test_always_true() -> None:
    true, mixed = np.ones((1, 1), np.bool_), np.asarray([[True], [False]])
    assert is_always_true(built(lambda g, x: g.expand(g.constant(true), (T, 3))))
    assert not is_always_true(built(lambda g, x: g.constant(mixed)))
    assert not is_always_true(built(lambda g, x: g.gt(x, 0)))
    assert not is_always_true(built(lambda g, x: g.constant(np.ones(3))))


def reals(make: Callable[[Emitter, Value], Value]) -> Value:
    g = emitter_for(spec_for("tract", NEWEST))
    x = g.external("x", (2, 3), FLOAT32)
    g.begin("m", None, ())
    return make(g, x)


@pytest.mark.parametrize(
    ("make", "least"),
    [
        (lambda g, x: g.max(x, 0.5), 0.5),
        (lambda g, x: g.unsqueeze(g.mul(g.log(g.max(x, 1e-10)), 10.0), axes=[0]), 10 * math.log(1e-10)),
        (lambda g, x: g.sub(g.sqrt(g.max(x, 4.0)), 1.5), 0.5),
        (lambda g, x: x, None),
        (lambda g, x: g.max(x, x), None),
        (lambda g, x: g.log(g.max(x, 0.0)), None),  # minus infinity
        (lambda g, x: g.mul(g.max(x, 1.0), -1.0), None),
        (lambda g, x: g.mul(g.max(x, 1.0), x), None),
        (lambda g, x: g.sub(1.0, g.max(x, 1.0)), None),
        (lambda g, x: g.sub(g.max(x, 1.0), x), None),
        (lambda g, x: g.mul(g.max(x, -1e20), 1e20), None),
        (lambda g, x: g.select(g.gt(x, 0.0), g.max(x, 1.0), x), None),
    ],
)
def test_least(make: Callable[[Emitter, Value], Value], least: float | None) -> None:
    lower_bound = least_of(reals(make))
    assert lower_bound is None if least is None else lower_bound == pytest.approx(least)
