"""The matrix in at most some sixty lines of Markdown, for a CI step."""

from __future__ import annotations

from pytest_t2n.records import CellLine
from pytest_t2n.report.matrix import Matrix, count_statuses, is_surprise

_FAILURES = 40
_MESSAGE = 120


def summary_markdown(matrix: Matrix) -> str:
    """Counts per engine version, then what somebody should look at."""
    statuses = matrix.statuses
    lines = ["# Parity of exported models", ""]
    lines.append(f"{len(matrix.rows)} cases on {len(matrix.columns)} engine versions, {len(matrix.cells)} cells")
    reused = sum(cell.reused for cell in matrix.cells)
    if reused:
        lines[-1] += f", {reused} of them of earlier sessions"
    lines += ["", f"| engine | {' | '.join(statuses)} |", f"| --- |{' ---: |' * len(statuses)}"]
    for index, engine in enumerate(matrix.columns):
        counts = count_statuses(matrix.column(index))
        lines.append(f"| {_escaped(engine.title)} | {' | '.join(str(counts[status] or '') for status in statuses)} |")
    failures = [cell for cell in matrix.cells if is_surprise(cell)]
    if failures:
        lines += ["", "| case | engine | status | stage | message |", "| --- | --- | --- | --- | --- |"]
        lines += [_failure(cell) for cell in failures[:_FAILURES]]
    if len(failures) > _FAILURES:
        lines += ["", f"… and {len(failures) - _FAILURES} more; see `index.html`"]
    return "\n".join(lines) + "\n"


def _failure(cell: CellLine) -> str:
    message = cell.error.message.split("\n", 1)[0] if cell.error else ""
    if len(message) > _MESSAGE:
        message = f"{message[:_MESSAGE]}…"
    words = (cell.case, cell.engine, cell.status, cell.stage, message)
    return f"| {' | '.join(_escaped(word) for word in words)} |"


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is, in a cell of a table."""
    text = " ".join(text.splitlines()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{letter}" if letter in "\\`*_[]|~" else letter for letter in text)


__all__ = ["summary_markdown"]
