"""Functions of one number at places where their values are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from t2n_core.dialect.operators import functions

LN2 = math.log(2.0)


@pytest.mark.parametrize(
    ("op", "x", "expected"),
    [
        ("abs", -3.0, 3.0),
        ("neg", -3.0, 3.0),
        ("sqr", 3.0, 9.0),
        ("square", -3.0, 9.0),
        ("sqrt", 9.0, 3.0),
        ("exp", math.log(3.0), 3.0),
        ("log", math.e**2, 2.0),
        ("log2", 8.0, 3.0),
        ("sin", math.pi / 6, 0.5),
        ("cos", math.pi / 3, 0.5),
        ("tan", -math.pi / 4, -1.0),
        ("asin", 0.5, math.pi / 6),
        ("acos", 0.5, math.pi / 3),
        ("atan", -1.0, -math.pi / 4),
        ("sinh", LN2, 0.75),
        ("cosh", LN2, 1.25),
        ("asinh", 0.75, LN2),
        ("acosh", 1.25, LN2),
        ("atanh", 0.6, LN2),
        ("tanh", LN2, 0.6),
        ("sigmoid", math.log(3.0), 0.75),
        ("silu", math.log(3.0), 0.75 * math.log(3.0)),
        ("softplus", math.log(3.0), math.log(4.0)),
        ("gelu", 1.0, 0.8413447460685429),
        ("elu", 0.5, 0.5),
        ("elu", -LN2, -0.5),
        ("selu", 2.0, 2.10140204),
        ("selu", -math.inf, -1.67326319 * 1.05070102),
        ("rcp", 4.0, 0.25),
        ("rsqr", 2.0, 0.25),
    ],
)
def test_a_known_value(op: str, x: float, expected: float) -> None:
    assert functions()[op].function(np.asarray([x])).tolist() == pytest.approx([expected], rel=1e-14)


@pytest.mark.parametrize(
    ("op", "parameter", "expected"),
    [
        ("softabs", 16.0, [5.0, 5.0, math.sqrt(17.0), math.sqrt(16.25)]),
        ("elu", 2.0, [2 * math.expm1(-3.0), 3.0, 1.0, 0.5]),
        ("leaky_relu", 0.5, [-1.5, 3.0, 1.0, 0.5]),
    ],
)
def test_a_parameter(op: str, parameter: float, expected: list[float]) -> None:
    result = functions()[op].function(np.asarray([-3.0, 3.0, 1.0, 0.5]), parameter)
    np.testing.assert_allclose(result, expected)


def test_the_slope_of_prelu_is_that_of_the_channel() -> None:
    x = np.asarray([[[-1.0, 0.5], [-2.0, -4.0]]])
    result = functions()["prelu"].function(x, np.asarray([[0.5, 0.25]]))
    assert result.tolist() == [[[-0.5, 0.5], [-0.5, -1.0]]]


def test_softmax_over_each_of_the_axes() -> None:
    softmax = functions()["softmax"].function
    x = np.log(np.asarray([[1.0, 3.0, 4.0], [1.0, 1.0, 4.0]]))
    np.testing.assert_allclose(softmax(x, [1])[0], [1 / 8, 3 / 8, 4 / 8])
    np.testing.assert_allclose(softmax(x, [0])[0], [1 / 2, 3 / 4, 1 / 2])
    np.testing.assert_allclose(softmax(x, [0, 1]), np.exp(x) / 14)
