"""The kind of a file: an NNEF archive, or an ONNX model, which every wheel of tract reads too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

SUFFIX: Final = ".onnx"
_ARCHIVE_SUFFIX: Final = re.compile(r"(?:\.nnef)?(?:\.tgz|\.tar\.gz|\.tar)?$", re.IGNORECASE)
_IR_VERSION: Final = b"\x08"
"""The tag of `ModelProto.ir_version`, which is required: fields are written in the order of their numbers."""


def split_archive_name(name: str) -> tuple[str, str]:
    """Return the name of an archive without its suffix, and the suffix: `kws0.23` and `.nnef.tgz`."""
    match = _ARCHIVE_SUFFIX.search(name)
    start = len(name) if match is None else match.start()
    return name[:start], name[start:]


def is_onnx(path: Path) -> bool:
    """Return whether a file holds an ONNX model, by its first byte, which begins no archive, or else by its name."""
    if path.is_dir():
        return False
    try:
        with path.open("rb") as file:
            head = file.read(1)
    except OSError:
        head = b""
    return head == _IR_VERSION or (path.suffix.lower() == SUFFIX and head != b"\x1f")
