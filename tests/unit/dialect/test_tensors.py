"""Stored tensors and data types."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.dialect.sizes import Size
from t2n_core.dialect.tensors import Tensor, datum_type, from_blocks, tensor_of
from t2n_core.errors import InputError
from t2n_core.nnef.dat import block_header
from t2n_core.nnef.reading.archive import StoredTensor


@pytest.mark.parametrize("item_type", [0x54523040, 0x54522040])
def test_blocks_are_levels_times_a_scale(item_type: int) -> None:
    rng = np.random.default_rng(5)
    levels = rng.integers(-8, 8, (2, 64))
    scales = np.array([[0.5, -0.25], [2.0, 0.125]], np.float16)
    data = block_header((2, 64))
    data = data[:48] + item_type.to_bytes(4, "little") + data[52:]
    for row, scale in zip(levels.reshape(-1, 32) + 8, scales.ravel(), strict=True):
        first, second = (row[:16], row[16:]) if item_type == 0x54523040 else (row[::2], row[1::2])
        packed = bytes(int(low) | int(high) << 4 for low, high in zip(first, second, strict=True))
        data += scale.tobytes() + packed
    expected = levels.reshape(2, 2, 32) * scales.astype(float)[..., None]
    np.testing.assert_array_equal(from_blocks(StoredTensor(data, (2, 64))), expected.reshape(2, 64))
    tensor = Tensor(StoredTensor(data, (2, 64)), np.dtype(np.float32), True)
    assert (tensor.array.dtype, tensor.raw().dtype) == (np.float64, np.float32)


def test_another_format_is_not_read() -> None:
    data = bytearray(block_header((1, 32)) + bytes(18))
    data[48] = 0x41
    with pytest.raises(InputError, match="items of the type 0x54523041, which cannot be read here"):
        from_blocks(StoredTensor(bytes(data), (1, 32)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("F16", "float16"), ("scalar", "float32"), ("TDim", "int64"), ("u8", "uint8"), ("Bool", "bool")],
)
def test_a_data_type_has_a_name(name: str, expected: str) -> None:
    assert datum_type(name) == np.dtype(expected)


def test_an_unknown_data_type_is_refused() -> None:
    with pytest.raises(InputError, match="data type 'F8' are not evaluated"):
        datum_type("F8")


def test_values_of_the_text_as_tensors() -> None:
    assert [tensor_of(value).dtype for value in (1.0, 2, True)] == [np.float32, np.int64, np.bool_]
    assert tensor_of([1.0, 2.0]).array.tolist() == [1, 2]
    assert [tensor_of(value).dtype for value in ([[1], [2]], [Size(1), 2], [1 << 31], [])] == [
        np.int32,
        np.int64,
        np.int64,
        np.float32,
    ]
    with pytest.raises(InputError, match="is not a tensor"):
        tensor_of("text")


def test_a_cast_to_an_integer_cuts_off() -> None:
    tensor = Tensor(np.array([1.9, -1.9]), np.dtype(np.float32)).as_type(np.dtype(np.int8))
    assert (tensor.dtype, tensor.array.tolist()) == (np.int8, [1, -1])
