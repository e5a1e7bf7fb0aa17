"""Write the report of a matrix: the page, the summary and the badges."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_t2n.records.schema import Record
from pytest_t2n.report.badges import BadgeFold
from pytest_t2n.report.markdown import SummaryFold, summary_markdown
from pytest_t2n.report.matrix import Matrix
from pytest_t2n.report.page import PageFold, write_page
from t2n_core.files import write_whole


def write_report(records: Iterable[Record], directory: Path, baseline: Iterable[Record] | None = None) -> list[Path]:
    """Write `index.html`, `summary.md` and a badge per engine version; return the files.

    Each file is written atomically. The caller writes `matrix.jsonl`. With the records of an earlier run as `baseline`,
    the changes since then come first.

    Raises:
        OSError: the directory cannot be written.
    """
    return write_matrix(Matrix.of(records), directory, Matrix.of(baseline) if baseline is not None else None)


def write_matrix(matrix: Matrix, directory: Path, before: Matrix | None = None) -> list[Path]:
    """Write the files of `write_report` from a matrix and, if given, an earlier run's. Raises OSError."""
    summary = SummaryFold(matrix)
    page, badges = PageFold(matrix, summary), BadgeFold(matrix)
    matrix.fold(summary, page, badges)
    written = write_page(matrix, page, directory, before)
    texts = {"summary.md": summary_markdown(matrix, before, summary), **badges.badges()}
    for name, text in texts.items():
        write_whole(directory / name, text)
    return written + [directory / name for name in texts]
