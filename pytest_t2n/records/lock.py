"""The lock of a folder of records: one session at a time writes into it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pytest_t2n.records.schema import RecordError

_LOCK_FILE = ".matrix.lock"
"""A file that stays in the folder; the system frees the lock when the process that has it ends, however it ends."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other sessions from writing into a folder, which is made if it is missing.

    Raises:
        RecordError: another session has it.
        OSError: the folder cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / _LOCK_FILE, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        ways = "wait until it has ended, or name another directory"
        raise RecordError(f"another session is writing its records to {folder}: {ways}") from None
    try:
        yield
    finally:
        lock.release()


__all__ = ["locked"]
