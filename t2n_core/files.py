"""Atomic replacement of files and folders, and digests of files."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def archive_digest(archive: Path) -> tuple[str, int]:
    """Return SHA-256 and size of an archive; of a directory, over names and contents of its files, sorted by name."""
    digest, size = hashlib.sha256(), 0
    files = sorted(p for p in archive.rglob("*") if p.is_file()) if archive.is_dir() else [archive]
    for path in files:
        if archive.is_dir():
            digest.update(f"{path.relative_to(archive).as_posix()}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
                size += len(block)
    return digest.hexdigest(), size


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a draft that replaces `path` when the block exits; after an error `path` is unchanged.

    Processes that write the same file at once have separate drafts. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(path) as draft:
        with draft.open("ab") as sink:
            yield sink
        os.replace(draft, path)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file, complete or not at all. Raises OSError."""
    with replacing(path) as sink:
        sink.write(content.encode() if isinstance(content, str) else content)


def replace_with(target: Path, write: Callable[[Path], None], *, folder: bool = False) -> None:
    """Let `write` fill a draft next to `target`, then rename it to `target`, which is unchanged after an error.

    A folder replaces another completely. Raises OSError.
    """
    with draft_of(target, folder=folder) as draft:
        write(draft)
        if not folder or not target.exists():
            draft.replace(target)
            return
        with draft_of(target, folder=True) as old:  # a folder cannot be renamed onto another
            moved = old / target.name
            target.rename(moved)
            try:
                draft.rename(target)
            except BaseException:
                moved.rename(target)
                raise


@contextmanager
def draft_of(target: Path, *, folder: bool = False) -> Iterator[Path]:
    """Create an empty file or folder beside `target`; it is removed at the end if it still exists."""
    draft = target.with_name(f".{target.name[:100]}.{os.urandom(8).hex()}.part")
    if folder:
        draft.mkdir()
    else:
        draft.open("xb").close()
    try:
        yield draft
    finally:
        if folder:
            shutil.rmtree(draft, ignore_errors=True)
        else:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
