"""The folder of a report: one session at a time writes into it, and other files stay as they are."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_t2n.records.schema import RecordError

MATRIX_FILE = "matrix.jsonl"
_LOCK_FILE = ".matrix.lock"
"""A file that stays in the folder; the system releases the lock when its process ends in any way."""
GITIGNORE_FILE = ".gitignore"
_GITIGNORE = "# Created by pytest-t2n: each run makes these files anew. Empty this one to keep them in git.\n*\n"
_BEGINNING = 1 << 16
"""Bytes at the start of a file that identify its kind."""
_PAGE_TITLE = b"t2n parity</title>"
_HISTORY_TITLE = b"t2n history</title>"
SUMMARY_TITLE = "# Parity of exported models"
_PARTS = re.compile("page-[0-9a-f]{12}")
"""Names of the folders with parts of a large page."""
_PART = re.compile(r"(evidence|graphs)-\d+\.js|\..*\.part")
"""Names of the files in these folders, and of drafts left by a killed session."""
_BADGE = {"schemaVersion", "label", "message", "color"}


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder against other sessions; it is created if missing.

    Git ignores what is in it if it is new, or holds an earlier report alone.

    Raises:
        RecordError: another session has locked it.
        OSError: the folder cannot be created or written.
    """
    from filelock import FileLock, Timeout

    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if is_new or _holds_report_alone(folder):
        ignore_in_git(folder)
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


def ignore_in_git(folder: Path) -> None:
    """Let git ignore all of a folder, unless it has a .gitignore. Raises OSError."""
    path = folder / GITIGNORE_FILE
    if not os.path.lexists(path):
        path.write_text(_GITIGNORE, encoding="utf-8")


def check_folder(folder: Path) -> None:
    """Raise RecordError if a report in this folder would overwrite a file that is not from a report."""
    for name, is_ours in ((MATRIX_FILE, _is_records), ("index.html", _is_page), ("summary.md", _is_summary)):
        _refuse_foreign(folder / name, is_ours, "report")


def check_history_folder(folder: Path) -> None:
    """Raise RecordError if the page of a history in this folder would overwrite another file."""
    _refuse_foreign(folder / "index.html", lambda path: _HISTORY_TITLE in _beginning(path), "history")


def remove_report(folder: Path) -> None:
    """Remove the report of an earlier session, so that a killed session does not leave it there. Raises OSError.

    Call `check_folder` first.
    """
    for name in ("index.html", "summary.md"):
        (folder / name).unlink(missing_ok=True)
    for file in folder.glob("badge-*.json"):
        if _is_badge(file):
            file.unlink(missing_ok=True)
    remove_parts(folder)


def remove_parts(folder: Path, keep: str = "") -> None:
    """Remove the parts of large pages from a report's folder, except one page's."""
    for path in folder.glob("page-*"):
        if path.name != keep and _is_page_parts(path):
            shutil.rmtree(path, ignore_errors=True)


def _refuse_foreign(path: Path, is_ours: Callable[[Path], bool], kind: str) -> None:
    if os.path.lexists(path) and not is_ours(path):
        raise RecordError(f"{path} is not from a {kind}, and would be overwritten: name another directory")


def _holds_report_alone(folder: Path) -> bool:
    if not (folder / _LOCK_FILE).exists():
        return False
    kinds = {MATRIX_FILE: _is_records, "index.html": _is_page, "summary.md": _is_summary, _LOCK_FILE: Path.is_file}
    return all(
        kinds[path.name](path) if path.name in kinds else _is_badge(path) or _is_page_parts(path)
        for path in folder.iterdir()
    )


def _is_records(path: Path) -> bool:
    return _beginning(path).startswith(b"{") or not _beginning(path)


def _is_page(path: Path) -> bool:
    return _PAGE_TITLE in _beginning(path)


def _is_summary(path: Path) -> bool:
    return _beginning(path).startswith(SUMMARY_TITLE.encode())


def _is_badge(path: Path) -> bool:
    try:
        badge = json.loads(_beginning(path))
    except (ValueError, RecursionError):
        return False
    return isinstance(badge, dict) and set(badge) == _BADGE and str(badge["label"]).startswith(("tract", "khronos"))


def _is_page_parts(path: Path) -> bool:
    try:
        name_matches = _PARTS.fullmatch(path.name) and not path.is_symlink()
        return bool(name_matches) and all(_PART.fullmatch(file.name) for file in path.iterdir())
    except OSError:
        return False


def _beginning(path: Path) -> bytes:
    """Return the first bytes of a file; empty if it is not a regular file, or cannot be read."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(_BEGINNING)
    except OSError:
        return b""
