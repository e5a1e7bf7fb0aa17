"""The records of a session on disk, written as cells end and read back one at a time, so that memory does not grow."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pytest_t2n.records.schema import CellLine, GraphLine, Record, decode_line, outline_of

_BLOCK = 1 << 18
"""Bytes read at a time."""


class RecordFile:
    """Lines of JSON, appended whole or not at all.

    Where the disk is full the lines that follow stay in memory: a session's end needs all of them.
    """

    def __init__(self, path: Path | None, *, append: bool = False) -> None:
        """`matrix.jsonl`, or a file without a name. Raises OSError."""
        self.path = path
        self._rest: list[bytes] = []
        self._file: io.FileIO = _opened(path, append)
        self._size = self._file.seek(0, io.SEEK_END)

    def append(self, line: bytes) -> OSError | None:
        """Write one line, which reaches the system before this returns; gives what was in the way, the first time."""
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
        """All, in order. Raises msgspec.DecodeError, OSError: somebody else wrote into the file."""
        for _, line in self._lines():
            yield decode_line(line)

    def outlines(self) -> StoredRecords:
        """What a report is made from: cells without their evidence, which is read again where it is needed."""
        return StoredRecords(self)

    def read(self, place: int) -> Record:
        """The record that `lines` has at `place`."""
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
        """Raises OSError."""
        self._file.close()

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Each with its place."""
        start, end, tail = 0, 0, b""
        while end < self._size:
            self._file.seek(end)  # whoever takes a line may write or read in between
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
    """The records of a file as a report takes them."""

    def __init__(self, file: RecordFile) -> None:
        self._file = file
        self._places: dict[str, int] = {}
        self._graphs: dict[str, int] = {}
        self.records: list[Record] = []
        """All but graphs; cells without evidence."""
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
        return _StoredGraphs(self._file, self._graphs)

    def whole(self, cell: CellLine) -> CellLine:
        """The cell with its evidence."""
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


def _opened(path: Path | None, append: bool) -> io.FileIO:
    if path is None:
        return tempfile.TemporaryFile(buffering=0)
    if not append and path.is_file() and not path.is_symlink():
        # A file of its own: another session may still read from, or write to, the one that has this name.
        with suppress(OSError):
            path.unlink()
    return open(path, "r+b" if append else "w+b", buffering=0)


__all__ = ["RecordFile", "StoredRecords"]
