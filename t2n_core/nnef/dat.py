"""Tensors in NNEF's binary format: a header of 128 bytes, then the elements in C order, little-endian."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from t2n_core.errors import InputError, WriteError

HEADER_SIZE: Final = 128
MAX_RANK: Final = 8
_LIMIT: Final = 2**32
"""Extents and the number of bytes are stored in 32 bits."""
_HEADER: Final = struct.Struct("<2sBBII8III76x")
_TRACT_VENDOR: Final = 0x5452
_BLOCKS: Final = 0x3040
_KINDS: Final = {"f": 0, "u": 1, "i": 4, "b": 5}
"""Item types of the standard. Booleans are packed into bits, the only format that all tract versions read."""
_READ_KINDS: Final = {**{number: letter for letter, number in _KINDS.items()}, 2: "u", 3: "i"}
"""Item types of the standard, plus the quantised integer types, in which tract writes all integers."""
BLOCK_ELEMENTS: Final = 32
BLOCK_BYTES: Final = 18
"""Bytes of a block of 4-bit integers with its scale, as in llama.cpp: a byte holds element i and element i + 16."""


def in_blocks(weight: WeightSource | None) -> bool:
    """Return whether the archive holds a weight in blocks of 4 bits."""
    return getattr(weight, "in_blocks", False)


class WeightSource(Protocol):
    """A source of the elements of a `variable`; read once, in pieces, while the archive is written."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def chunks(self) -> Iterator[memoryview]:
        """Yield the elements in C order, little-endian, as bytes."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ArrayWeight:
    """A weight that is a numpy array; nothing is copied until it is written."""

    array: NDArray[Any]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def chunks(self) -> Iterator[memoryview]:
        little = self.array.dtype.newbyteorder("<")
        plain = np.ascontiguousarray(self.array, dtype=little)
        if plain.size:
            yield plain.reshape(-1).view(np.uint8).data

    def digest(self) -> bytes:
        """Return a hash of dtype, shape and elements, without a copy: the weight may be large."""
        hasher = sha256(f"{self.dtype.str}{self.shape}".encode())
        for chunk in self.chunks():
            hasher.update(chunk)
        return hasher.digest()


def data_size(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    """Return the number of bytes of a tensor after the header."""
    count = math.prod(shape)
    if dtype.kind == "b":
        return max((count + 7) // 8, 1)  # tract refuses an empty boolean tensor without any byte
    return count * dtype.itemsize


def stored_size(source: WeightSource) -> int:
    """Return the number of bytes after the header of a weight, which may be in blocks."""
    if in_blocks(source):
        return math.prod(source.shape) // BLOCK_ELEMENTS * BLOCK_BYTES
    return data_size(source.dtype, source.shape)


def block_header(shape: tuple[int, ...]) -> bytes:
    """Return tract's own header of a tensor in blocks. Raises WriteError for a shape that cannot be stored in blocks.

    Blocks run along all axes but the first.
    """
    if len(shape) < 2 or math.prod(shape[1:]) % BLOCK_ELEMENTS:
        raise WriteError(f"a tensor of shape {list(shape)} cannot be stored in blocks of {BLOCK_ELEMENTS} in a row")
    size = math.prod(shape) // BLOCK_ELEMENTS * BLOCK_BYTES
    if size >= _LIMIT:
        raise WriteError(f"a tensor of shape {list(shape)} cannot be stored: NNEF files hold less than 4 GiB")
    item_type = _TRACT_VENDOR << 16 | _BLOCKS
    extents = [*shape, *[0] * (MAX_RANK - len(shape))]
    return _HEADER.pack(b"N\xef", 1, 0, size, len(shape), *extents, _LIMIT - 1, item_type)


def read_header(content: bytes, where: str) -> tuple[tuple[int, ...], np.dtype[Any] | None]:
    """Return shape and dtype of a tensor from the first bytes of its file; no dtype for tract's own formats.

    Raises InputError, which names `where`, for a damaged one.
    """
    if len(content) < HEADER_SIZE:
        raise InputError(f"{where}: {len(content)} bytes are not a tensor")
    magic, _, _, _, rank, *rest = _HEADER.unpack(content[:HEADER_SIZE])
    if magic != b"N\xef" or rank > MAX_RANK:
        raise InputError(f"{where}: the header of the tensor is damaged")
    bits, kind = rest[8], _READ_KINDS.get(rest[9])
    shape = tuple(rest[:rank])
    if kind is None or (kind != "b" and bits not in (8, 16, 32, 64)) or (kind == "f" and bits == 8):
        return shape, None
    return shape, np.dtype(np.bool_ if kind == "b" else f"{kind}{bits // 8}")


def header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of a tensor. Raises WriteError for a dtype, rank or size that the format cannot represent."""
    bits = 1 if dtype.kind == "b" else dtype.itemsize * 8
    if dtype.kind not in _KINDS or bits > 64:
        raise WriteError(f"a tensor of {dtype} cannot be stored: NNEF has float, integer and bool items up to 64 bits")
    if len(shape) > MAX_RANK:
        raise WriteError(f"a tensor of rank {len(shape)} cannot be stored: NNEF files hold at most rank {MAX_RANK}")
    size = data_size(dtype, shape)
    if size >= _LIMIT or any(extent >= _LIMIT for extent in shape):
        raise WriteError(
            f"a tensor of shape {list(shape)} and {dtype} cannot be stored: NNEF files hold less than 4 GiB"
        )
    extents = [*shape, *[0] * (MAX_RANK - len(shape))]
    return _HEADER.pack(b"N\xef", 1, 0, size, len(shape), *extents, bits, _KINDS[dtype.kind])


def pieces(source: WeightSource) -> Iterator[bytes | memoryview]:
    """Yield the whole content of the file, header first, piece by piece; the weight is never copied as a whole.

    Raises WriteError for a tensor that the format cannot hold, and if the source yields more or fewer bytes than
    expected.
    """
    dtype, shape = source.dtype, source.shape
    yield block_header(shape) if in_blocks(source) else header(dtype, shape)
    expected = stored_size(source) if in_blocks(source) else math.prod(shape) * dtype.itemsize
    count = 0
    rest = b""
    for chunk in source.chunks():
        count += chunk.nbytes
        if dtype.kind != "b":
            yield chunk
            continue
        flags = rest + bytes(chunk)
        end = len(flags) - len(flags) % 8
        rest = flags[end:]
        if end:
            yield _pack_bits(flags[:end])
    if dtype.kind == "b" and (rest or not expected):
        yield _pack_bits(rest) or b"\0"
    if count != expected:
        raise WriteError(f"a weight of shape {list(shape)} and {dtype} yielded {count} bytes instead of {expected}")


def _pack_bits(flags: bytes) -> bytes:
    """Return one bit per byte, 1 for a byte that is not zero, most significant first."""
    return np.packbits(np.frombuffer(flags, np.uint8) != 0).tobytes()
