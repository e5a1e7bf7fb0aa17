"""Special values of the standard's operators, computed by hand from their definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from t2n_core.dialect.operators import functions
from t2n_core.dialect.sizes import Size
from tests.each import check_each

INF, NAN = np.inf, np.nan


def of(name: str) -> Callable[..., Any]:
    return functions()[name].function


def f(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=np.float64)


def i(*values: int, dtype: str = "int64") -> np.ndarray[Any, Any]:
    return np.array(values, dtype=dtype)


TABLE: list[tuple[str, tuple[Any, ...], Any]] = [
    ("add", (f(INF, 1), f(-INF, NAN)), f(NAN, NAN)),
    ("add", (i(127, -128, dtype="int8"), i(1, -1, dtype="int8")), i(-128, 127, dtype="int8")),
    ("sub", (i(0, dtype="uint8"), i(1, dtype="uint8")), i(255, dtype="uint8")),
    ("mul", (f(0.0), f(INF)), f(NAN)),
    ("div", (f(1, -1, 0, 3), f(0, 0, 0, 2)), f(INF, -INF, NAN, 1.5)),
    ("div", (i(-7, 7, 9, -8), i(2, -2, 4, 4)), i(-3, -3, 2, -2)),
    ("div", (i(-128, dtype="int8"), i(-1, dtype="int8")), i(-128, dtype="int8")),
    ("div", (i(255, dtype="uint8"), i(2, dtype="uint8")), i(127, dtype="uint8")),
    ("pow", (f(0, -8, NAN, 0), f(0, 1 / 3, 0, -1)), f(1, NAN, 1, INF)),
    ("pow", (i(3, -2), i(4, 3)), i(81, -8)),
    ("min", (f(NAN, 1, NAN, -INF), f(2, NAN, NAN, 0)), f(2, 1, NAN, -INF)),
    ("max", (f(NAN, 1, NAN, INF), f(2, NAN, NAN, 0)), f(2, 1, NAN, INF)),
    ("clamp", (f(3, -3, NAN), f(-1), f(-2)), f(-1, -1, -1)),
    ("add_n", ([],), f(0)),
    ("sign", (f(-0.0, 0.0, -INF, NAN, 0.2),), f(0, 0, -1, NAN, 1)),
    ("rcp", (f(0.0, -0.0, INF, 4),), f(INF, -INF, 0, 0.25)),
    ("rsqrt", (f(0.0, -1, 4, INF),), f(INF, NAN, 0.5, 0)),
    ("rsqr", (f(0.0, -2),), f(INF, 0.25)),
    ("log", (f(0.0, -1, INF),), f(-INF, NAN, INF)),
    ("lt", (f(NAN, -0.0), f(1, 0.0)), np.array([False, False])),
    ("eq", (f(NAN, -0.0, INF), f(NAN, 0.0, INF)), np.array([False, True, True])),
    ("ne", (f(NAN, -0.0), f(NAN, 0.0)), np.array([True, False])),
    ("le", (f(NAN, 1), f(NAN, 1)), np.array([False, True])),
    ("ge", (f(NAN, 1), f(NAN, 1)), np.array([False, True])),
    ("select", (np.array([True, False]), f(1, NAN), f(NAN, 2)), f(1, 2)),
    ("round", (f(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999999999999994, INF, NAN),), f(1, 2, 3, 0, -1, -2, 0, INF, NAN)),
    ("round", (i(3, -4),), i(3, -4)),
    ("floor", (f(-0.5, INF),), f(-1, INF)),
    ("ceil", (f(-0.5, -INF),), f(-0.0, -INF)),
    ("relu", (f(-INF, INF, NAN),), f(0, INF, 0)),
    ("sigmoid", (f(-INF, INF, -800, 0),), f(0, 1, 0, 0.5)),
    ("silu", (f(-INF, INF, 0),), f(0, INF, 0)),
    ("gelu", (f(-INF, INF, 0),), f(0, INF, 0)),
    ("tanh", (f(-INF, 800),), f(-1, 1)),
    ("softplus", (f(-INF, 800, 0),), f(0, 800, np.log(2))),
    ("elu", (f(-INF, NAN, 2), 3.0), f(-3, NAN, 2)),
    ("prelu", (f(-2, NAN, 3), f(0.5)), f(-1, NAN, 3)),
    ("softmax", (f(-INF, 0, 0).reshape(1, 3), [1]), f(0, 0.5, 0.5).reshape(1, 3)),
    ("softmax", (f(-INF, -INF).reshape(1, 2), [1]), f(NAN, NAN).reshape(1, 2)),
    ("softmax", (f(7, 8), []), f(1, 1)),
    ("sum_reduce", (np.zeros((2, 0)), [1]), np.zeros((2, 1))),
    ("sum_reduce", (i(100, 100, dtype="int8"), [0]), i(-56, dtype="int8")),
    ("sum_reduce", (i(-3, -4), [0], True), i(-3)),
    ("mean_reduce", (np.zeros((1, 0)), [1]), np.full((1, 1), NAN)),
    ("max_reduce", (np.zeros((1, 0)), [1]), np.full((1, 1), -INF)),
    ("max_reduce", (f(1, NAN), [0]), f(NAN)),
    ("min_reduce", (np.zeros((0,), np.int8), [0]), i(127, dtype="int8")),
    ("any_reduce", (np.zeros((0,), bool), [0]), np.array([False])),
    ("all_reduce", (np.zeros((0,), bool), [0]), np.array([True])),
    ("argmax_reduce", (f(2, 3, 3, 1), [0]), i(1)),
    ("argmax_reduce", (f(2, NAN, 3), [0]), i(1)),
    ("argmin_reduce", (f(2, 1, 1), [0]), i(1)),
    ("reshape", (np.zeros((2, 0, 3)), [0, 0, 3]), np.zeros((2, 0, 3))),
    ("tile", (np.zeros((2, 1)), [0, 3]), np.zeros((0, 3))),
    ("split", (f(1, 2, 3), 0, [1, 2]), (f(1), f(2, 3))),
    ("slice", (i(0, 1, 2, 3, 4), [0], [1], [0]), i(1, 2, 3, 4)),
    ("slice", (i(0, 1, 2, 3, 4), [0], [0], [Size(0)]), i()),
    ("slice", (i(0, 1, 2, 3, 4), [0], [-9], [9]), i(0, 1, 2, 3, 4)),
    ("slice", (i(0, 1, 2, 3, 4), [0], [-1], [-9], [-2]), i(4, 2, 0)),
    ("slice", (i(0, 1, 2, 3, 4), [0], [3], [0], [-1]), i(3, 2, 1)),
    ("slice", (i(0, 1, 2, 3, 4), [0], [3], [2]), i()),
    ("slice", (i(0, 1, 2, 3, 4), [0], [1], [5], [3]), i(1, 4)),
    ("pad", (f(1, 2, 3), [(2, 2)], "reflect"), f(3, 2, 1, 2, 3, 2, 1)),
    ("pad", (f(1, 2, 3), [(2, 1)], "reflect-even"), f(2, 1, 1, 2, 3, 3)),
    ("pad", (f(1, 2, 3), [(-1, 2)], "constant", 9.0), f(2, 3, 9, 9)),
    ("max_pool", (f(-3, -1, -2), [2], "constant", [(1, 0)]), f(0, -1, -1)),
    ("max_pool", (f(-3, -1, -2), [2], "ignore", [(1, 0)]), f(-3, -1, -1)),
    ("max_pool", (f(1, 2, 3), [2], "ignore", None, [2]), f(2, 3)),
    ("max_pool", (i(-3, -1, dtype="int8"), [2], "ignore", [(1, 0)]), i(-3, -1, dtype="int8")),
    ("argmax_pool", (f(-3, -1, -1), [2], "constant", [(1, 0)]), i(0, 1, 0)),
    ("max_pool_with_index", (f(-3, -1, -2), [2], "ignore", [(1, 0)]), (f(-3, -1, -1), i(1, 1, 0))),
    ("avg_pool", (f(3, 1), [2], "constant", [(1, 1)]), f(1.5, 2, 0.5)),
    ("avg_pool", (f(3, 1), [2], "ignore", [(1, 1)]), f(3, 2, 1)),
    ("box", (f(1, 2, 4), [2], "replicate", [(1, 0)]), f(2, 3, 6)),
    ("sample", (f(5, 6, 7), i(1, 0), [2], "constant", [(0, 0)]), f(6, 6)),
    ("desample", (f(6, 7), i(1, 0), [2], "constant", [(0, 0)]), f(0, 13, 0)),
    ("desample", (f(6, 7), i(1, 0), [2], "constant", [(0, 0)], [2]), f(0, 6, 7, 0)),
    ("debox", (f(1, 2), [3], "constant", [(1, 1)], [2], None, [5]), f(1, 3, 2, 2, 0)),
    ("multilinear_upsample", (f(2, 6).reshape(1, 1, 2), [2], "symmetric", "constant"),
     f(1.5, 3, 5, 4.5).reshape(1, 1, 4)),
    ("multilinear_upsample", (f(2, 6).reshape(1, 1, 2), [2], "asymmetric"), f(2, 4, 6, 6).reshape(1, 1, 4)),
    ("multilinear_upsample", (f(2).reshape(1, 1, 1), [3], "aligned"), f(2, 2, 2).reshape(1, 1, 3)),
    ("linear_quantize", (f(-1, 0.4, 0.5, 7), f(0), f(3), 2), f(0, 0, 1, 3)),
    ("min_max_linear_quantize", (f(-5, -0.4, 2), f(-1), f(1), 2, True, True), f(-1, 0, 1)),
    ("zero_point_linear_quantize", (f(-300, 0.24, 0.25, 900), i(3), f(0.5), 8, True, False), f(-65.5, 0, 0.5, 62)),
    ("zero_point_linear_quantize", (f(-300, 900), i(0), f(1), 8, True, True), f(-127, 127)),
    ("zero_point_linear_quantize", (f(-300, 900), i(128), f(1), 8, False, False), f(-128, 127)),
    ("logarithmic_quantize", (f(0, -3, 5, 100), f(16), 2), f(0, -4, 4, 16)),
    ("local_variance_normalization", (f(0, 0), [1]), f(NAN, NAN)),
    ("l1_normalization", (f(-1, 3), [0], 0.0, 8.0), f(-0.125, 0.375)),
    ("matmul", (np.zeros((2, 0)), np.zeros((0, 3))), np.zeros((2, 3))),
    ("constant", ([2, 2], [1.5]), np.full((2, 2), 1.5)),
    ("constant", ([2], [1, 2]), i(1, 2)),
    ("copy_n", (f(1), 2), (f(1), f(1))),
    ("conv", (f(1, 2, 3).reshape(1, 1, 3), f(1, 10).reshape(1, 1, 2)), f(21, 32, 3).reshape(1, 1, 3)),
    ("deconv", (f(1, 2).reshape(1, 1, 2), f(1, 10, 100).reshape(1, 1, 3), 0.0, "constant", None, [2]),
     f(1, 10, 102, 20).reshape(1, 1, 4)),
    ("deconv", (f(1, 2).reshape(1, 1, 2), f(1, 10, 100).reshape(1, 1, 3), 0.0, "constant", None, [2], None, [1, 1, 3]),
     f(10, 102, 20).reshape(1, 1, 3)),
    ("debox", (f(1, 2), [2], "constant", None, [2]), f(1, 1, 2, 2)),
    ("debox", (f(1, 2), [2], "constant", None, [2], None, [3]), f(1, 1, 2)),
    ("conv", (f(1, 2, 3).reshape(1, 1, 3), f(2, 3).reshape(2, 1, 1), f(10, 20)),
     f(12, 14, 16, 23, 26, 29).reshape(1, 2, 3)),
    ("pow", (f(2), i(-1)), f(0.5)),
    ("pow", (i(2), f(-1)), f(0.5)),
    ("pow", (i(5, -3), i(0, 1)), i(1, -3)),
    ("div", (f(1), i(2)), f(0.5)),
    ("div", (i(1), f(2)), f(0.5)),
    ("softmax", (f(0, 0, np.log(3), 0).reshape(1, 2, 2),), f(0.25, 0.5, 0.75, 0.5).reshape(1, 2, 2)),
    ("softmax", (f(800, 800).reshape(1, 2), [1]), f(0.5, 0.5).reshape(1, 2)),
    ("elu", (f(-0.0, np.log(0.5)),), f(0, -0.5)),
    ("min_max_linear_quantize", (f(3), f(0), f(7), 3, True, False), f(3)),
    ("min_max_linear_quantize", (f(3), f(0), f(7), 3, False, True), f(3)),
    ("logarithmic_quantize", (f(100, 0.001), f(20), 3), f(32, 0.25)),
    ("matmul", (i(1, 2, 3, 4).reshape(1, 2, 2), i(1, 0, 0, 1).reshape(1, 2, 2), True), i(1, 3, 2, 4).reshape(1, 2, 2)),
    ("matmul", (i(1, 0, 0, 1).reshape(1, 2, 2), i(1, 2, 3, 4).reshape(1, 2, 2), False, True),
     i(1, 3, 2, 4).reshape(1, 2, 2)),
    ("reshape", (np.zeros((2, 3, 4)), [6], 0, 2), np.zeros((6, 4))),
    ("concat", ([f(1, 2)], 0), f(1, 2)),
    ("stack", ([f(1, 2)], 0), f(1, 2).reshape(1, 2)),
    ("slice", (i(0, 1, 2, 3, 4), [0], [9], [0], [-1]), i(4, 3, 2, 1)),
    ("slice", (i(0, 1, 2), [0], [-1], [-9], [-1]), i(2, 1, 0)),
    ("gather", (f(5, 6), i(0, 1)), f(5, 6)),
]  # fmt: skip


def test_special_values() -> None:
    def check(row: tuple[str, tuple[Any, ...], Any]) -> None:
        name, arguments, expected = row
        with np.errstate(all="ignore"):
            results = of(name)(*arguments)
        if not isinstance(expected, tuple):
            results, expected = (results,), (expected,)
        assert len(results) == len(expected)
        for result, value in zip(results, expected, strict=True):
            assert result.shape == value.shape
            np.testing.assert_allclose(result, value, rtol=1e-12, atol=1e-12)
            if value.dtype.kind in "iub":
                assert result.dtype == value.dtype

    check_each(TABLE, check)


REFUSED: list[tuple[str, tuple[Any, ...], type[Exception]]] = [
    ("div", (i(1), i(0)), ZeroDivisionError),
    ("div", (i(1, 1), i(1, 0)), ZeroDivisionError),
    ("pow", (i(2), i(-1)), ValueError),
    ("pow", (i(2, 2), i(1, -1)), ValueError),
    ("pow", (i(2, 2, dtype="uint64"), i(1, -1)), ValueError),
    ("reshape", (np.zeros((2, 3)), [4, 2]), ValueError),
    ("reshape", (np.zeros((0, 3)), [0, -1]), ValueError),
    ("squeeze", (np.zeros((2, 3)), [0]), ValueError),
    ("tile", (np.zeros((2, 3)), [2]), ValueError),
    ("split", (np.zeros(4), 0, [1, 2]), ValueError),
    ("slice", (np.zeros(4), [0], [Size(-1)], [4]), ValueError),
    ("gather", (np.zeros(4), i(4)), IndexError),
    ("gather", (np.zeros(4), i(-1)), IndexError),
    ("gather", (np.zeros(4), i(-1, 1)), IndexError),
    ("gather", (np.zeros(4), i(1, 4)), IndexError),
    ("pad", (np.zeros(4), [(1, 1)], "circular"), ValueError),
    ("box", (np.zeros(4), [7], "constant", [(1, 1)]), ValueError),
    ("conv", (np.zeros((1, 2, 3)), np.zeros((1, 3, 1))), ValueError),
    ("conv", (np.zeros((1, 2, 3), np.int8), np.zeros((1, 2, 1), np.int8)), ValueError),
    ("deconv", (np.zeros((1, 2, 3)), np.zeros((1, 2, 1)), 0.0, "replicate"), ValueError),
    ("multilinear_upsample", (np.zeros((1, 1, 3)), [2], "cubic"), ValueError),
]


def test_what_is_outside_of_the_domain_is_refused() -> None:
    def check(row: tuple[str, tuple[Any, ...], type[Exception]]) -> None:
        name, arguments, error = row
        with pytest.raises(error):
            of(name)(*arguments)

    check_each(REFUSED, check)
