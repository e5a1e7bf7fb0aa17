"""Tensor files, read back by the reader of the `nnef` package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nnef
import numpy as np
import pytest

from t2n_core.errors import WriteError
from t2n_core.nnef.dat import HEADER_SIZE, ArrayWeight, data_size, header, pieces

DTYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]


class Chunked:
    """A weight that comes in pieces of any size, and may promise something else than it gives."""

    def __init__(self, array: np.ndarray[Any, Any], size: int, shape: tuple[int, ...] | None = None) -> None:
        self.array, self.size = array, size
        self.dtype, self.shape = array.dtype, array.shape if shape is None else shape

    def chunks(self) -> Iterator[memoryview]:
        data = self.array.tobytes()
        for start in range(0, len(data), self.size):
            yield memoryview(data)[start : start + self.size]


def random_array(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(11)
    if dtype == "?":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("f"):
        return rng.standard_normal(shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip(dtype: str, tmp_path: Path) -> None:
    for shape in ((), (1,), (8,), (3, 5, 7), (2, 1, 3, 1, 2, 1, 2, 3)):
        array = random_array(dtype, shape)
        file = tmp_path / "t.dat"
        file.write_bytes(b"".join(pieces(ArrayWeight(array))))
        assert file.stat().st_size == HEADER_SIZE + data_size(array.dtype, array.shape)
        with file.open("rb") as stream:
            read = nnef.read_tensor(stream)
        read = read[0] if isinstance(read, tuple) else read
        assert (read.dtype, read.shape) == (array.dtype, shape)
        np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize("size", [1, 3, 8, 64])
def test_pieces_of_any_size_give_the_same_file(size: int) -> None:
    for dtype in ("?", "f4"):
        array = random_array(dtype, (3, 5, 7))
        assert b"".join(pieces(Chunked(array, size))) == b"".join(pieces(ArrayWeight(array)))


def test_bool_of_any_byte_is_true() -> None:
    flags = np.frombuffer(bytes([0, 1, 2, 255, 0]), np.uint8).view(bool)
    assert b"".join(pieces(ArrayWeight(flags)))[HEADER_SIZE:] == bytes([0b01110000])


def test_order_and_bytes_of_odd_arrays() -> None:
    array = random_array("f4", (4, 6))
    expected = b"".join(pieces(ArrayWeight(np.ascontiguousarray(array.T))))
    assert b"".join(pieces(ArrayWeight(array.T))) == expected
    big = array.T.astype(">f4")
    assert b"".join(pieces(ArrayWeight(big))) == expected


def test_empty_bool_has_a_byte() -> None:
    """tract computes `bytes * 8 - 8` without a sign."""
    assert b"".join(pieces(ArrayWeight(np.zeros((0, 3), bool))))[HEADER_SIZE:] == b"\0"


@pytest.mark.parametrize("promised", [(3, 4), (5, 4), (0,)])
@pytest.mark.parametrize("dtype", ["f4", "?"])
def test_broken_promise(promised: tuple[int, ...], dtype: str) -> None:
    with pytest.raises(WriteError, match="yielded"):
        list(pieces(Chunked(random_array(dtype, (4, 4)), 7, promised)))


@pytest.mark.parametrize(
    ("dtype", "shape", "message"),
    [
        ("c8", (2,), "complex64"),
        ("f16", (2,), "float128"),
        ("O", (2,), "object"),
        ("f4", (1,) * 9, "rank 9"),
        ("f4", (2**15, 2**15), "4 GiB"),
        ("?", (2**32,), "4 GiB"),
    ],
)
def test_what_cannot_be_stored(dtype: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(WriteError, match=message):
        header(np.dtype(dtype), shape)
