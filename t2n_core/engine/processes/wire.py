"""Frames on the pipes between the parent, the worker and the worker's children.

A frame is a fixed prefix (magic, length of the header, length of the body), a JSON header, and the raw bytes of the
arrays that the header describes, each starting at a multiple of 64.
"""

from __future__ import annotations

import contextlib
import json
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from t2n_core.engine.protocol import Array

PREFIX = struct.Struct("<4sIQ")
_MAGIC = b"t2n\x01"
_ALIGNMENT = 64
_JOINED = 1 << 16
"""Most bytes of a frame that is written at once: one call of the system, and one wake-up of the reader."""


class WireError(Exception):
    """Raised if the bytes on the channel are not frames: something else wrote there."""


class ByteReader(Protocol):
    def readinto(self, buffer: memoryview, /) -> int | None: ...


class ByteWriter(Protocol):
    def write(self, data: bytes | memoryview, /) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Frame:
    """One message; `body` is raw, so that it can be forwarded without decoding."""

    header: Mapping[str, Any]
    body: bytearray

    def arrays(self) -> list[Array]:
        """Return the arrays as writable views of the body."""
        arrays: list[Array] = []
        start = 0
        for dtype_name, shape in self.header.get("arrays", ()):
            dtype = np.dtype(dtype_name)
            count = int(np.prod(shape, dtype=np.int64))
            arrays.append(np.frombuffer(self.body, dtype, count, start).reshape(shape))
            start += _padding(count * dtype.itemsize)
        return arrays


def widen_pipe(descriptor: int) -> None:
    """Enlarge the buffer of a pipe if the system allows it: large arrays are then four times as fast."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, 1 << 20)


def _padding(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def plain_array(array: Array) -> Array:
    """Return the array contiguous and in native byte order, of the same rank. Raises TypeError for Python objects."""
    if array.dtype.hasobject:
        raise TypeError(f"an array of dtype {array.dtype} cannot be sent to an engine")
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)


def encode_frame(header: Mapping[str, Any], arrays: Sequence[Array] = ()) -> list[bytes | memoryview]:
    """Return the pieces of a frame, to be written one after the other; array memory is not copied."""
    plain = [plain_array(array) for array in arrays]
    full = {**header, "arrays": [(array.dtype.str, array.shape) for array in plain]} if plain else header
    text = json.dumps(full).encode()
    pieces: list[bytes | memoryview] = [b"", text]
    size = 0
    for array in plain:
        if array.size:
            pieces.append(array.reshape(-1).view(np.uint8).data)
        if gap := _padding(array.nbytes) - array.nbytes:
            pieces.append(bytes(gap))
        size += _padding(array.nbytes)
    pieces[0] = PREFIX.pack(_MAGIC, len(text), size)
    return pieces


def write_frame(stream: ByteWriter, header: Mapping[str, Any], arrays: Sequence[Array] = ()) -> None:
    """Write a whole frame, whatever the size of the pipe. Raises OSError if the other end is closed."""
    pieces = encode_frame(header, arrays)
    if sum(map(len, pieces)) <= _JOINED:
        pieces = [b"".join(pieces)]
    for piece in pieces:
        write_all(stream, piece)


def write_all(stream: ByteWriter, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) or 0 :]


def frame_size(prefix: bytes | bytearray) -> tuple[int, int]:
    """Return the lengths of header and body. Raises WireError."""
    magic, header, body = PREFIX.unpack(prefix)
    if magic != _MAGIC:
        raise WireError(f"not a frame: {bytes(prefix)!r}")
    return header, body


def read_frame(stream: ByteReader) -> Frame | None:
    """Return the next frame; None at the end of the stream, also when it ends inside a frame. Raises WireError."""
    prefix = _read_exactly(stream, PREFIX.size)
    if prefix is None:
        return None
    header_size, body_size = frame_size(prefix)
    header, body = _read_exactly(stream, header_size), _read_exactly(stream, body_size)
    if header is None or body is None:
        return None
    return Frame(json.loads(header), body)


def _read_exactly(stream: ByteReader, size: int) -> bytearray | None:
    buffer = bytearray(size)
    view = memoryview(buffer)
    while view:
        got = stream.readinto(view)
        if not got:
            return None
        view = view[got:]
    return buffer
