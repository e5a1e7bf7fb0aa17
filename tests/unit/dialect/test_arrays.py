"""Conversions between data types, and the words for them."""

import numpy as np
import pytest

from t2n_core.dialect.arrays import all_axes, cast, data_type, integers, round_half_away
from t2n_core.errors import SpecError


@pytest.mark.parametrize(
    ("name", "kind"),
    [("f32", "float32"), ("F16", "float16"), ("TDim", "int64"), ("bool", "bool"), ("QU8(Z:3 S:0.5)", "uint8")],
)
def test_names_of_data_types(name: str, kind: str) -> None:
    assert data_type(name) == np.dtype(kind)


def test_a_type_without_arrays_is_refused() -> None:
    with pytest.raises(SpecError, match="no data type of tract's NNEF is called 'blob'"):
        data_type("blob")


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([2.9, -2.9, 300.0, -300.0, np.nan, np.inf, -np.inf], "int8", [2, -2, 127, -128, 0, 127, -128]),
        ([-1.0, 255.5, 256.0], "uint8", [0, 255, 255]),
        ([1e19, -1e19, 2.0**62, 2.0**63, -(2.0**63)], "int64", [2**63 - 1, -(2**63), 2**62, 2**63 - 1, -(2**63)]),
        ([0.0, -0.0, 0.2, np.nan], "bool", [False, False, True, True]),
        ([1e39, 1.0], "float32", [np.inf, 1.0]),
    ],
)
def test_floats_are_cast_as_rust_casts(values: list[float], kind: str, expected: list[float]) -> None:
    result = cast(np.asarray(values), np.dtype(kind))
    assert result.dtype == np.dtype(kind)
    assert result.tolist() == expected


def test_integers_are_cast_modulo_their_width() -> None:
    assert cast(np.asarray([300, -1]), np.dtype(np.uint8)).tolist() == [44, 255]
    assert cast(np.asarray([200], dtype=np.uint8), np.dtype(np.int8)).tolist() == [-56]


def test_halves_are_rounded_away_from_zero() -> None:
    assert round_half_away(np.asarray([0.5, 1.5, -0.5, -2.5, 0.4])).tolist() == [1.0, 2.0, -1.0, -3.0, 0.0]


def test_axes_count_from_the_end_too() -> None:
    assert all_axes(3, -1, 0) == (2, 0)
    with pytest.raises(SpecError, match="a tensor of rank 3 has no axis 3"):
        all_axes(3, 3)


def test_integers_of_an_attribute() -> None:
    assert integers(np.asarray(3)) == integers(3) == integers([3]) == [3]
