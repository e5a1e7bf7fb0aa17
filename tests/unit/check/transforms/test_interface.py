"""Inputs and outputs as the engine describes them, and where each was before a transform."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.check.transforms.interface import Interface, Port, positions


@pytest.mark.parametrize(
    ("fact", "shape", "dtype"),
    [
        ("3,64,f16", ("3", "64"), np.float16),
        ("1,P+S,8,F32", ("1", "P+S", "8"), np.float32),
        ("max(1,P),I64", ("max(1,P)",), np.int64),
        (",F32", (), np.float32),
        ("bool", (), np.bool_),
        ("2,u8", ("2",), np.uint8),
        ("2,TDim", ("2",), None),
        ("2,QI8(Z:0 S:1)", ("2",), None),
    ],
)
def test_a_fact_has_a_shape_and_a_type(fact: str, shape: tuple[str, ...], dtype: type | None) -> None:
    port = Port.of("x", fact)
    assert (port.shape, port.dtype) == (shape, None if dtype is None else np.dtype(dtype))


def ports(*names: str) -> tuple[Port, ...]:
    return Interface.of({"input": [(name, "2,f32") for name in names], "output": []}).inputs


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a b c", "a b c", [0, 1, 2]),
        ("a b c", "c a b", [2, 0, 1]),
        ("a b c", "c", [2]),
        ("a b", "x y", [0, 1]),  # renamed, in their order
        ("a a", "a a", [0, 1]),  # two outputs of one node
        ("a b c", "x c", None),
        ("a a b", "a", None),
        ("a", "a b", None),
    ],
)
def test_ports_are_found_by_name_or_by_order(before: str, after: str, expected: list[int] | None) -> None:
    assert positions(ports(*before.split()), ports(*after.split())) == expected
