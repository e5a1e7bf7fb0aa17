"""The kind of a file: an NNEF archive, or an ONNX model, which every wheel of tract reads too."""

from __future__ import annotations

from pathlib import Path
from typing import Final

SUFFIX: Final = ".onnx"
_IR_VERSION: Final = b"\x08"
"""The tag of `ModelProto.ir_version`, which is required: fields are written in the order of their numbers."""


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
