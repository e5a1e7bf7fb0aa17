"""Formats of quantised values."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.errors import InputError
from t2n_core.nnef.reading.quantisation import Grid, read_grids

ZERO_POINT = "zero_point_linear_quantize(zero_point = -3, scale = 0.5, bits = {bits}, signed = {signed})"


def test_formats_have_names() -> None:
    text = f"""
"z": {ZERO_POINT.format(bits=8, signed="false")};  # a comment
i"y.out": {ZERO_POINT.format(bits=32, signed="true")};
"a b": linear_quantize(min = -1.5, max = 3.6, bits = 8);
"""
    grids = read_grids(text)
    assert grids["z"] == Grid(-3, 0.5, np.dtype(np.uint8))
    assert grids["y_out"] == Grid(-3, 0.5, np.dtype(np.int32))
    assert (grids["a_b"].zero_point, grids["a_b"].dtype) == (-52, np.int8)
    assert grids["a_b"].scale == pytest.approx(0.02)
    assert read_grids("") == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('"z": linear_quantize(min = 1.0, bits = 8);', "the format of `z` in graph.quant cannot be read"),
        (f'"z": {ZERO_POINT.format(bits=4, signed="true")};', "the format of `z` in graph.quant cannot be read"),
        ('"z": logarithmic_quantize(max = 1.0, bits = 8);', "the format of `z` in graph.quant cannot be read"),
        ('"z": 3;', "line 1, column 1 of the graph.quant: `z` has no format"),
        ('"z" linear_quantize();', "the text ends too early: `:` is expected"),
    ],
)
def test_other_formats_are_not_read(text: str, reason: str) -> None:
    with pytest.raises(InputError) as error:
        read_grids(text)
    assert reason in str(error.value)
