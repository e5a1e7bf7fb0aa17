"""Folders of test data of the ONNX model zoo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from t2n_core.errors import InputError
from t2n_core.onnx_file.data_set import read_tensors


def test_tensors_in_order(tmp_path: Path) -> None:
    arrays = [np.arange(4.0, dtype="f4"), np.array([[True, False]])]
    for index, array in enumerate(arrays):
        (tmp_path / f"input_{index}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    for got, array in zip(read_tensors(tmp_path, "input", 2), arrays, strict=True):
        np.testing.assert_array_equal(got, array)
        assert got.dtype == array.dtype
    with pytest.raises(InputError, match=r"has 2 files input_N\.pb, and the model has 1 inputs"):
        read_tensors(tmp_path, "input", 1)


def test_a_damaged_tensor(tmp_path: Path) -> None:
    (tmp_path / "output_0.pb").write_bytes(b"\x08\x01\x12\xff")
    with pytest.raises(InputError, match=r"output_0\.pb is not an ONNX tensor"):
        read_tensors(tmp_path, "output", 1)
