"""Failures as annotations of a pull request: lines that a job prints for GitHub, each at its line of the model."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_t2n.records.schema import CellLine
from pytest_t2n.report.causes import find_causes
from pytest_t2n.report.matrix import Matrix, is_surprise
from t2n_core.text import visible

_SHOWN = 10
"""Most annotations of a kind that GitHub shows for each step."""
_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?: in .*)?$", re.DOTALL)


def annotation_lines(matrix: Matrix, root: Path) -> list[str]:
    """Return a line for each cause of unexpected failures, at the model's line, or at the file of the test.

    Files are relative to `root`, the checkout; a line outside it is named in the text.
    """
    lines = []
    for cause in find_causes(cell for cell in matrix.cells if is_surprise(cell))[:_SHOWN]:
        file, line = _place(cause.first, root.resolve())
        location = f"file={_property(file)}" + (f",line={line}" if line else "")
        engines = ", ".join(cause.engines)
        text = cause.first.error.message if cause.first.error is not None else cause.title
        hint = cause.first.error.hint if cause.first.error is not None else ""
        body = [f"{cause.count} cells of {engines}, first {cause.first.case}", text, hint]
        title = f"{cause.first.status} at {cause.first.stage}"
        lines.append(f"::error {location},title={_property(title)}::{_data(chr(10).join(filter(None, body)))}")
    return lines


def _place(cell: CellLine, root: Path) -> tuple[str, int]:
    """Return the file below `root` and the line of a failure; the test's file and 0 if it has no place there."""
    match = _PLACE.match(cell.error.source.partition(": `")[0]) if cell.error is not None else None
    if match is not None:
        path = root / match["file"]  # an absolute path stays unchanged
        if path.is_relative_to(root) and path.is_file():
            return path.relative_to(root).as_posix(), int(match["line"])
    return cell.nodeid.partition("::")[0], 0


def _data(text: str) -> str:
    """Return a text as the message of a workflow command; control characters become visible, lines stay lines."""
    plain = "\n".join(visible(line) for line in text.splitlines())
    return plain.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
