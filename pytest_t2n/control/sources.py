"""The digest of a project's Python files, so that an interrupted session is only resumed with the same code."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from t2n_core.foreign import ForeignFileError, open_file

_MOST_FILES = 20_000
"""A folder with more files is not a project, but a home folder or a disk."""
_MOST_BYTES = 16 << 20
"""Bytes of a file that are read; no module that Python compiles in a sensible time has more."""
_FOREIGN = frozenset({"__pycache__", "node_modules", "site-packages"})


def source_digest(root: Path) -> str:
    """Return the SHA-256 of the names and contents of the Python files below a folder.

    Environments and hidden folders are left out. An empty text is returned for a folder with too many files.
    """
    digest = hashlib.sha256()
    for count, path in enumerate(_python_files(root)):
        if count >= _MOST_FILES:
            return ""
        try:
            with open_file(path) as file:
                size, content = os.fstat(file.fileno()).st_size, file.read(_MOST_BYTES)
        except (OSError, ForeignFileError):  # it was deleted, is not readable, or is a pipe or a device
            continue
        digest.update(f"{path.relative_to(root).as_posix()}\0{size}\0".encode(errors="surrogatepass"))
        digest.update(content)
    return digest.hexdigest()


def _python_files(root: Path) -> Iterator[Path]:
    for folder, below, files in os.walk(root):
        here = Path(folder)
        below[:] = sorted(
            name
            for name in below
            if not name.startswith(".") and name not in _FOREIGN and not (here / name / "pyvenv.cfg").exists()
        )
        yield from (here / name for name in sorted(files) if name.endswith(".py"))
