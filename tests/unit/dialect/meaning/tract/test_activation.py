"""Activations at values that are known."""

import math

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.activation import (
    clamped_swiglu,
    erf,
    gelu_approx,
    hard_swish,
    pow_const,
    round_even,
    sigmoid,
    silu,
)
from t2n_core.errors import SpecError

INF, NAN = math.inf, math.nan


def test_sigmoid() -> None:
    np.testing.assert_allclose(sigmoid(np.asarray([0.0, math.log(3.0), -INF, INF])), [0.5, 0.75, 0.0, 1.0])


def test_silu() -> None:
    result = silu(np.asarray([0.0, math.log(3.0), -math.log(3.0), -INF, INF, NAN, -800.0]))
    np.testing.assert_allclose(result, [0.0, 0.75 * math.log(3.0), -0.25 * math.log(3.0), 0.0, INF, NAN, 0.0])


def test_hard_swish() -> None:
    result = hard_swish(np.asarray([-4.0, -3.0, -1.5, 0.0, 1.5, 3.0, 4.0, INF, NAN, -INF]))
    np.testing.assert_allclose(result, [0.0, 0.0, -0.375, 0.0, 1.125, 3.0, 4.0, INF, NAN, NAN])


def test_gelu_approx() -> None:
    inner = math.tanh(math.sqrt(2.0 / math.pi) * 1.044715)
    np.testing.assert_allclose(gelu_approx(np.asarray([1.0, -1.0, 0.0])), [(1 + inner) / 2, -(1 - inner) / 2, 0.0])


def test_the_fast_gelu_squares_where_the_other_one_cubes() -> None:
    inner = math.tanh(math.sqrt(2.0 / math.pi) * (-2.0 + 0.044715 * 4.0))
    np.testing.assert_allclose(gelu_approx(np.asarray([-2.0]), True), [-(1 + inner)])


def test_erf() -> None:
    result = erf(np.asarray([[0.0, 0.5, -0.5], [INF, -INF, NAN]]))
    np.testing.assert_allclose(result, [[0.0, 0.5204998778130465, -0.5204998778130465], [1.0, -1.0, NAN]])


def test_round_even() -> None:
    result = round_even(np.asarray([0.5, 1.5, 2.5, -0.5, -1.5, 2.51, INF]))
    assert result.tolist() == [0.0, 2.0, 2.0, 0.0, -2.0, 3.0, INF]
    assert round_even(np.asarray([3, -4])).tolist() == [3, -4]


def test_pow_const() -> None:
    np.testing.assert_array_equal(pow_const(np.asarray([4.0, 0.0, -4.0, NAN]), 0.5), [2.0, 0.0, NAN, NAN])
    np.testing.assert_array_equal(pow_const(np.asarray([2.0, 0.0, NAN]), 0.0), [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(pow_const(np.asarray([4.0, 0.0]), -0.5), [0.5, INF])


def test_clamped_swiglu() -> None:
    third = math.log(3.0)
    result = clamped_swiglu(np.asarray([third, 9.0, third]), np.asarray([1.0, 0.0, -9.0]), 1.0, 2.0)
    at_limit = 2.0 / (1.0 + math.exp(-2.0))
    np.testing.assert_allclose(result, [2.0 * 0.75 * third, at_limit, -1.0 * 0.75 * third])


def test_clamped_swiglu_does_not_broadcast() -> None:
    with pytest.raises(SpecError, match=r"`gate` has the shape \(2,\), `up` \(1,\)"):
        clamped_swiglu(np.zeros(2), np.zeros(1), 1.0, 2.0)


@pytest.mark.parametrize(("alpha", "limit"), [(INF, 1.0), (1.0, 0.0), (1.0, INF), (1.0, -1.0)])
def test_clamped_swiglu_needs_finite_bounds(alpha: float, limit: float) -> None:
    with pytest.raises(SpecError, match="alpha must be finite"):
        clamped_swiglu(np.zeros(1), np.zeros(1), alpha, limit)
