"""A folder of entries: `cells.jsonl` with a line for each cell, and the texts of archives by their digests."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from t2n_core.files import write_whole

Cells: TypeAlias = dict[str, list[str]]
"""Cell -> its entries: `archive` and a digest, or `refused`, `skipped`, `timeout`, `crash` and a message."""
ARCHIVE = "archive "
UNFINISHED = ("timeout ", "crash ")
_GRAPH = "graph.nnef"


class Folder:
    """Entries and texts on disk. Several processes may add to it at once."""

    def __init__(self, path: Path) -> None:
        self.path, self._file = path, path / "cells.jsonl"

    def begin(self, code: str) -> None:
        """Make the folder, or check that it holds entries of the same code. Raises ValueError if it does not."""
        note = self.path / "code.txt"
        if not note.exists():
            write_whole(note, code)
        elif note.read_text(encoding="utf-8") != code:
            raise ValueError(f"{self.path} holds entries of other code: name another folder, or remove it")
        if self._file.exists() and not self._file.read_bytes().endswith(b"\n"):
            self._append(b"\n")  # the last line was cut off

    def add(self, cell: str, entries: list[str]) -> None:
        """Append a cell's entries; an earlier line's entries no longer count."""
        self._append(json.dumps({"cell": cell, "entries": entries}).encode() + b"\n")

    def _append(self, line: bytes) -> None:
        file = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, line)
        finally:
            os.close(file)

    def cells(self) -> Cells:
        """Return the entries of every cell. A line that was cut off is left out."""
        cells: Cells = {}
        for line in self._file.read_text(encoding="utf-8").split("\n") if self._file.exists() else ():
            with suppress(ValueError):
                record = json.loads(line)
                cells[record["cell"]] = record["entries"]
        return cells

    def keep(self, archive: Path) -> str:
        """Keep the text of an archive, and return its entry."""
        text = archive_text(archive).encode()
        digest = hashlib.sha256(text).hexdigest()
        file = self._text(digest)
        if not file.exists():
            write_whole(file, gzip.compress(text, 6, mtime=0))
        return ARCHIVE + digest

    def text(self, entry: str) -> str:
        """Return the text of an archive's entry, and any other entry as it is."""
        if not entry.startswith(ARCHIVE):
            return entry
        return gzip.decompress(self._text(entry.removeprefix(ARCHIVE)).read_bytes()).decode()

    def _text(self, digest: str) -> Path:
        return self.path / "texts" / digest[:2] / f"{digest[2:]}.gz"


def archive_text(archive: Path) -> str:
    """Return the graph of an archive, then a line for each of its other files: name, bytes, SHA-256."""
    files = dict(_files(archive))
    graph = files.pop(_GRAPH, b"").decode()
    lines = [f"# {name} {len(content)} {hashlib.sha256(content).hexdigest()}\n" for name, content in files.items()]
    return graph + "".join(lines)


def _files(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.is_dir():
        for path in sorted(path for path in archive.rglob("*") if path.is_file()):
            yield path.relative_to(archive).as_posix(), path.read_bytes()
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            stream = tar.extractfile(member)
            yield member.name, b"" if stream is None else stream.read()
