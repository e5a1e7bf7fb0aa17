"""Files of records: read or written at once, or appended to as cells end and read back one by one."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

import msgspec

from pytest_t2n.records.outline import outline_of
from pytest_t2n.records.schema import (
    SCHEMA,
    CellLine,
    EndLine,
    GraphLine,
    PlanLine,
    Record,
    RecordError,
    RunLine,
)
from t2n_core.files import replacing
from t2n_core.foreign import ForeignFileError, open_file
from t2n_core.text import all_storable, text_of

_BLOCK = 1 << 18
"""Bytes read at a time."""
_LONGEST_LINE = 512 << 20
"""Most bytes of a line; that of the plan is the longest, with about 200 for each cell."""


class _Versioned(Protocol):
    @property
    def schema(self) -> int: ...


_Line = TypeVar("_Line", bound=_Versioned)
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
    for _, _, record in each_with_offset(path, torn, _decoder):
        yield record


def each_with_offset(
    path: Path, torn: Callable[[str], object] | None, decoder: msgspec.json.Decoder[_Line]
) -> Iterator[tuple[int, int, _Line]]:
    """Yield the offset and the size in bytes of each record with its decoded value; see `each_record`."""
    place, size = 0, 0
    cells: set[int] = set()
    """Hashes of node id and platform, since 50,000 node ids take more memory."""
    with _foreign(path) as lines:
        for number, line in enumerate(iter(partial(lines.readline, _LONGEST_LINE), b""), 1):
            place, size = place + size, len(line)
            if size == _LONGEST_LINE:
                raise RecordError(f"{path}:{number}: the line has more than {_LONGEST_LINE} bytes")
            if not line.strip():
                continue
            try:
                record = decoder.decode(line)
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
            yield place, size, record


def _foreign(path: Path) -> BinaryIO:
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
        for _, line in self._lines():
            yield decode_line(line)

    def outlines(self) -> StoredRecords:
        """Return the records for a report: outlines, whose evidence is read again on demand."""
        return StoredRecords(self)

    def read(self, place: int) -> Record:
        """Return the record at a position of `_lines`."""
        if place < 0:
            return decode_line(self._rest[-1 - place])
        self._file.seek(place)
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

    def _lines(self) -> Iterator[tuple[int, bytes]]:
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


class StoredRecords:
    """The records of a file for a report: outlines in memory, evidence and graphs on disk."""

    def __init__(self, file: RecordFile) -> None:
        self._file = file
        self._places: dict[str, int] = {}
        self._graphs: dict[str, int] = {}
        self.records: list[Record] = []
        """All records except graphs; cells are outlines."""
        words: dict[str, str] = {}
        for place, line in file._lines():
            record = decode_line(line)
            if isinstance(record, GraphLine):
                self._graphs[record.key] = place
                continue
            if isinstance(record, CellLine):
                record = outline_of(record, words)
                self._places[record.nodeid] = place
            self.records.append(record)

    @property
    def graphs(self) -> Mapping[str, str]:
        """Return the texts of the graphs by their keys, read from the file on access."""
        return _StoredGraphs(self._file, self._graphs)

    def in_order(self, nodeids: Iterable[str]) -> Iterator[Record]:
        """Yield all records with the cells in an order, each graph before the first cell that has it.

        Raises msgspec.DecodeError, OSError.
        """
        yield from (record for record in self.records if isinstance(record, RunLine | PlanLine))
        written: set[str] = set()
        for nodeid in nodeids:
            cell = self._file.read(self._places[nodeid])
            if isinstance(cell, CellLine) and cell.graph in self._graphs and cell.graph not in written:
                written.add(cell.graph)
                yield self._file.read(self._graphs[cell.graph])
            yield cell
        yield from (record for record in self.records if isinstance(record, EndLine))

    def with_evidence(self, cell: CellLine) -> CellLine:
        """Return the cell with its evidence."""
        if cell.nodeid not in self._places:
            return cell  # planned, but not in the file
        found = self._file.read(self._places[cell.nodeid])
        return found if isinstance(found, CellLine) else cell


class _StoredGraphs(Mapping[str, str]):
    def __init__(self, file: RecordFile, places: Mapping[str, int]) -> None:
        self._file, self._places = file, places

    def __getitem__(self, key: str) -> str:
        found = self._file.read(self._places[key])
        assert isinstance(found, GraphLine)
        return found.text

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _open(path: Path | None, append: bool) -> io.FileIO:
    if path is None:
        return tempfile.TemporaryFile(buffering=0)
    if not append and path.is_symlink() and not path.is_char_device():
        path.unlink()  # its target belongs to another user
    elif not append and path.is_file():
        # A new file: another session may still read from, or write to, the one of this name.
        with suppress(OSError):
            path.unlink()
    return open(path, "r+b" if append else "w+b", buffering=0)
