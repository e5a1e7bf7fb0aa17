"""The matrix as files that people and other tools read; made from records only, and the same bytes each time."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pytest_t2n.records.schema import Record
from pytest_t2n.report.badges import badges
from pytest_t2n.report.markdown import summary_markdown
from pytest_t2n.report.matrix import Matrix
from pytest_t2n.report.page import matrix_page


def write_report(records: Iterable[Record], directory: Path, baseline: Iterable[Record] | None = None) -> list[Path]:
    """Write `index.html`, `summary.md` and a badge per engine version; gives the files.

    Each file is complete or as it was before. `matrix.jsonl` is the caller's. With the records of an earlier run as
    `baseline`, what changed since stands first.

    Raises:
        OSError: the directory cannot be written.
    """
    return write_matrix(Matrix.of(records), directory, Matrix.of(baseline) if baseline is not None else None)


def write_matrix(matrix: Matrix, directory: Path, before: Matrix | None = None) -> list[Path]:
    """As `write_report`, of a matrix and that of the earlier run. Raises OSError."""
    files = {
        "index.html": matrix_page(matrix, before),
        "summary.md": summary_markdown(matrix, before),
        **badges(matrix),
    }
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in files.items():
        path = directory / name
        draft = path.with_name(f".{name}.draft")
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)
        written.append(path)
    return written


__all__ = ["Matrix", "write_matrix", "write_report"]
