"""Untrusted files, read with limits on location, kind, size and depth: they are data, and may be damaged."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO, TypeVar

import msgspec

from t2n_core.text import text_of

_Content = TypeVar("_Content")
_MOST_FILES = 100_000
_SHOWN = 200
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_BYTE = re.compile(r"\(byte (\d+)\)")


class ForeignFileError(ValueError):
    """A file that is refused; the message names it and the reason."""


def check_name(name: str) -> tuple[str, ...]:
    """Return the parts of a file's name inside a folder. Raises ForeignFileError for a name that leads out of it."""
    parts = PurePosixPath(name).parts
    if "\0" in name or "\\" in name or not parts or ".." in parts or PureWindowsPath(name).anchor:
        raise ForeignFileError(f"{name[:_SHOWN]!r} is not the name of a file inside the folder")
    return parts


def inside(folder: Path, name: str) -> Path:
    """Return the path of the file or folder `name` inside a folder; neither `..` nor a link may lead out of it.

    Raises ForeignFileError, also if it does not exist.
    """
    shown = repr(name[:_SHOWN])
    path = folder.joinpath(*check_name(name))
    try:
        real = path.resolve(strict=True)
        is_own = real.is_relative_to(folder.resolve())
    except (OSError, RuntimeError) as exc:  # RuntimeError: links in a circle
        raise ForeignFileError(f"{shown} cannot be read: {getattr(exc, 'strerror', None) or exc}") from None
    if not is_own:
        raise ForeignFileError(f"{shown} is a link that leads out of the folder")
    return path


def refuse_strange_files(folder: Path) -> None:
    """Raise ForeignFileError if a folder holds links, pipes or devices, or very many files. Raises OSError."""
    count = 0
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            count += 1
            path = Path(parent, name)
            mode = path.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise ForeignFileError(f"{path.relative_to(folder).as_posix()} is neither a file nor a folder")
        if count > _MOST_FILES:
            raise ForeignFileError(f"{folder.name} holds more than {_MOST_FILES} files")


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading; a pipe, which could block, and a device are refused.

    Raises ForeignFileError, OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise ForeignFileError(f"{path.name} is not a regular file")
    return file


def is_shared(path: Path) -> bool:
    """Return whether others than this user may write to a file or folder: it is theirs, or open to all."""
    try:
        state = path.stat()
    except OSError:
        return False
    user = os.getuid() if hasattr(os, "getuid") else state.st_uid
    return state.st_uid not in (user, 0) or bool(state.st_mode & stat.S_IWOTH)


def read_file(path: Path, most: int) -> bytes:
    """Return the content of a file of at most `most` bytes. Raises ForeignFileError, OSError."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise ForeignFileError(f"{path.name} has {size} bytes, more than {most}")
        return file.read(size)


def decode_json(data: bytes, kind: type[_Content], where: str) -> _Content:
    """Decode JSON as a value of a type. Raises ForeignFileError, whose message begins with `where` and the line."""
    try:
        content = msgspec.json.decode(data, type=kind)
        if _LONG_NUMBER.search(data):
            msgspec.msgpack.encode(content)  # the format in which it is sent to other processes
        return content
    except RecursionError:
        raise ForeignFileError(f"{where}: it is nested too deeply") from None
    except OverflowError:
        raise ForeignFileError(f"{where}: an integer has more than 64 bits") from None
    except (msgspec.MsgspecError, ValueError) as exc:
        text = text_of(exc)
        match = _BYTE.search(text)
        line = f":{data[: int(match[1])].count(10) + 1}" if match else ""
        raise ForeignFileError(f"{where}{line}: {text}") from None
