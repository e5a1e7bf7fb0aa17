"""Files of records: read or written at once, or appended to as cells end and read back one by one."""

from __future__ import annotations

import io
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from pytest_t2n.records.folder import MATRIX_FILE
from pytest_t2n.records.schema import SCHEMA, CellLine, Record, RecordError
from t2n_core.files import replacing
from t2n_core.foreign import ForeignFileError, open_file
from t2n_core.text import all_storable, text_of

_BLOCK = 1 << 18
"""Bytes read at a time."""
_LONGEST_LINE = 512 << 20
"""Most bytes of a line; the plan's is the longest, with about 200 for each cell."""


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def encode(record: Record) -> str:
    """Return a record as one line of JSON, without its end; lone surrogates become escapes."""
    try:
        return _encoder.encode(record).decode()
    except UnicodeEncodeError:
        return _encoder.encode(all_storable(msgspec.to_builtins(record))).decode()


def decode_line(line: str | bytes) -> Record:
    """Return the record of a line. Raises msgspec.DecodeError for any other line."""
    return _decoder.decode(line)


def read_records(path: Path, torn: Callable[[str], object] | None = None) -> list[Record]:
    """Return all records of a file, as `each_record` yields them. Raises RecordError, OSError."""
    return list(each_record(path, torn))


def each_record(path: Path, torn: Callable[[str], object] | None = None) -> Iterator[Record]:
    """Yield the records of a file in turn.

    `torn` is called for an unfinished last line of a killed session, which is left out; without it that is an error,
    too.

    Raises:
        RecordError: a line that is not a record, of a newer schema, or the second one of a cell; the message names file
            and line.
        OSError: the file cannot be read.
    """
    with open_records(path) as lines:
        yield from (record for _, record in each_with_offset(path, lines, torn))


def read_durations(path: Path) -> dict[str, float]:
    """Return the seconds of each case in all its engines, from a `matrix.jsonl` or a directory with one.

    A time that is equal to the last digit in several cells of a case was spent once: its engines share a capture.
    A case without times is left out. Raises RecordError, OSError.
    """
    times: dict[str, set[tuple[str, float]]] = {}
    for record in each_record(path / MATRIX_FILE if path.is_dir() else path):
        if isinstance(record, CellLine) and record.times:
            times.setdefault(record.case, set()).update(record.times.items())
    return {case: math.fsum(seconds for _, seconds in spent) for case, spent in times.items()}


def each_with_offset(path: Path, lines: BinaryIO, torn: Callable[[str], object] | None) -> Iterator[tuple[int, Record]]:
    """Yield the offset of each record in an open file, and the record; see `each_record`."""
    offset, size = 0, 0
    cells: set[int] = set()
    """Hashes of node id and platform, since 50,000 node ids take more memory."""
    for number, line in enumerate(iter(partial(lines.readline, _LONGEST_LINE), b""), 1):
        offset, size = offset + size, len(line)
        if size == _LONGEST_LINE:
            raise RecordError(f"{path}:{number}: the line has more than {_LONGEST_LINE} bytes")
        if not line.strip():
            continue
        try:
            record = decode_line(line)
        except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
            if line.endswith(b"\n"):
                raise RecordError(f"{path}:{number}: {text_of(exc)}") from exc
            problem = f"{path}:{number}: the last line is incomplete; its session was killed while it wrote"
            if torn is None:
                raise RecordError(problem) from exc
            torn(problem)
            return
        if record.schema > SCHEMA:
            raise RecordError(f"{path}:{number}: schema {record.schema}, but this version reads up to {SCHEMA}")
        if isinstance(record, CellLine):
            count = len(cells)
            cells.add(hash((record.nodeid, record.platform)))
            if len(cells) == count:
                raise RecordError(f"{path}:{number}: a second record of {record.nodeid}")
        yield offset, record


def open_records(path: Path) -> BinaryIO:
    """Open a file of records. Raises RecordError if it may not be read, OSError."""
    try:
        return open_file(path)
    except ForeignFileError as exc:
        raise RecordError(f"{path.parent}{os.sep}{exc}") from None


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write a file of records, complete or not at all. Raises OSError."""
    with replacing(path) as sink:
        for record in records:
            sink.write(f"{encode(record)}\n".encode())


class RecordFile:
    """A file of records that grows while a session runs; each line is appended completely or not at all.

    If the disk is full, further lines stay in memory, since the end of a session needs all of them.
    """

    def __init__(self, path: Path | None, *, append: bool = False) -> None:
        """Open `path`, or an unnamed file. Raises OSError."""
        self.path = path
        self._rest: list[bytes] = []
        self._file: io.FileIO = _open(path, append)
        self._size = self._file.seek(0, io.SEEK_END)

    @property
    def size(self) -> int:
        """Return a number that grows with each line, even if the disk is full, but not with an interrupted line."""
        return self._size + len(self._rest)

    @property
    def is_lost(self) -> bool:
        """Return whether the file was removed or replaced since it was opened."""
        if self.path is None:
            return False
        try:
            return not os.path.samestat(os.fstat(self._file.fileno()), os.stat(self.path))
        except OSError:
            return True

    def append(self, line: bytes) -> OSError | None:
        """Write one line and flush it; return the error, if it is the first one."""
        if self._rest:
            self._rest.append(line)
            return None
        try:
            self._file.seek(self._size)
            rest = memoryview(line + b"\n")
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as exc:
            self._rest.append(line)
            with suppress(OSError):
                self._file.truncate(self._size)
            return exc
        self._size += len(line) + 1
        return None

    def records(self) -> Iterator[Record]:
        """Yield all records in order. Raises msgspec.DecodeError, OSError if someone else wrote into the file."""
        for _, line in self.lines():
            yield decode_line(line)

    def read(self, offset: int) -> Record:
        """Return the record at a position of `lines`."""
        if offset < 0:
            return decode_line(self._rest[-1 - offset])
        self._file.seek(offset)
        line = b""
        while not line.endswith(b"\n"):
            block = self._file.read(4096)
            if not block:
                break
            end = block.find(b"\n") + 1
            line += block[: end or len(block)]
        return decode_line(line.rstrip(b"\n"))

    def close(self) -> None:
        """Close the file. Raises OSError."""
        self._file.close()

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield each line with its position: its offset, or a negative index of a line in memory."""
        start, end, tail = 0, 0, b""
        while end < self._size:
            self._file.seek(end)  # the caller may write or read between two lines
            block = self._file.read(min(_BLOCK, self._size - end))
            if not block:
                break
            end += len(block)
            *lines, tail = (tail + block).split(b"\n")
            for line in lines:
                yield start, line
                start += len(line) + 1
        for number, line in enumerate(self._rest):
            yield -1 - number, line


def _open(path: Path | None, append: bool) -> io.FileIO:
    if path is None:
        return tempfile.TemporaryFile(buffering=0)
    if not append and path.is_symlink() and not path.is_char_device():
        path.unlink()  # its target belongs to another user
    elif not append and path.is_file():
        # A new file: another session may still read from or write to the existing one.
        with suppress(OSError):
            path.unlink()
    return open(path, "r+b" if append else "w+b", buffering=0)
