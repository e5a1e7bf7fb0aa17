"""The matrix in about sixty lines of Markdown, for a CI step."""

from __future__ import annotations

from pytest_t2n.records.changes import compare_matrices, count_changes
from pytest_t2n.records.counts import count_tokens
from pytest_t2n.records.schema import CellLine
from pytest_t2n.report.causes import message_gist
from pytest_t2n.report.matrix import Matrix, count_statuses, is_surprise
from pytest_t2n.report.tiers import releases_of, tier_changes
from t2n_core.text import visible

_FAILURES = 40
_CHANGES = 12
_MESSAGE = 120


def summary_markdown(matrix: Matrix, baseline: Matrix | None = None) -> str:
    """Return changes since the baseline, counts per engine version, then unexpected failures."""
    statuses = matrix.statuses
    lines = ["# Parity of exported models", ""]
    notice = [f"**{_escaped(matrix.completeness.notice)}**", ""] if matrix.completeness.notice else []
    lines += notice
    lines.append(f"{len(matrix.rows)} cases on {len(matrix.columns)} engine versions, {len(matrix.cells)} cells")
    reused = sum(cell.reused for cell in matrix.cells)
    if reused:
        lines[-1] += f", {reused} of them of earlier sessions"
    changes = _changes(baseline, matrix) if baseline is not None else []
    kernels = _kernels(matrix)
    lines += kernels + changes
    shown = _FAILURES - len(changes) - len(kernels) - len(notice)
    tokens = count_tokens(matrix.cells)
    heads = [*statuses, *(["tokens"] if tokens else [])]
    lines += ["", f"| engine | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(heads)}"]
    for index, engine in enumerate(matrix.columns):
        counts = count_statuses(matrix.column(index))
        numbers = [str(counts[status] or "") for status in statuses]
        numbers += [str(tokens.get(engine.title, ""))] if tokens else []
        lines.append(f"| {_escaped(engine.title)} | {' | '.join(numbers)} |")
    failures = [cell for cell in matrix.cells if is_surprise(cell)]
    if failures:
        lines += ["", "| case | engine | status | stage | message |", "| --- | --- | --- | --- | --- |"]
        lines += [_failure(cell) for cell in failures[:shown]]
    if len(failures) > shown:
        lines += ["", f"… and {len(failures) - shown} more; see `index.html`"]
    return "\n".join(lines) + "\n"


def _kernels(matrix: Matrix) -> list[str]:
    """Return the cases whose status differs between the kernel tiers of a release."""
    changes = tier_changes(matrix)
    differing = [change for change in changes if change.status_differs]
    if not any(len(release.columns) > 1 for release in releases_of(matrix.columns)):
        return []
    counts = f"{len(differing)} have another status, {len(changes) - len(differing)} only another level"
    lines = ["", f"With other kernels of the same release: {counts}"]
    if differing:
        lines += ["", "| case | release | worst | each tier |", "| --- | --- | --- | --- |"]
    for change in differing[:_CHANGES]:
        words = (change.row.case, change.release, change.worst, change.text)
        lines.append(f"| {' | '.join(_escaped(word) for word in words)} |")
    if len(differing) > _CHANGES:
        lines += ["", f"… and {len(differing) - _CHANGES} more; see `index.html`"]
    return lines


def _changes(before: Matrix, after: Matrix) -> list[str]:
    changes = compare_matrices(before.cells, after.cells)
    lines = ["", f"Since the baseline: {count_changes(changes)}"]
    if before.completeness.notice:
        lines[-1] += f" (the baseline is not whole: {_escaped(before.completeness.notice)})"
    if not changes:
        return lines
    lines += ["", "| change | case | engine | before | after |", "| --- | --- | --- | --- | --- |"]
    for change in changes[:_CHANGES]:
        fields = change.to_dict()
        words = " | ".join(_escaped(fields[name]) for name in ("kind", "case", "column", "before", "after"))
        lines.append(f"| {words} |")
    if len(changes) > _CHANGES:
        lines += ["", f"… and {len(changes) - _CHANGES} more changes"]
    return lines


def _failure(cell: CellLine) -> str:
    message = message_gist(cell)
    if len(message) > _MESSAGE:
        message = f"{message[:_MESSAGE]}…"
    words = (cell.case, cell.engine, cell.status, cell.stage, message)
    return f"| {' | '.join(_escaped(word) for word in words)} |"


def _escaped(text: str) -> str:
    """Return the text escaped, so that Markdown shows it unchanged in a cell of a table."""
    text = " ".join(visible(text).splitlines()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{letter}" if letter in "\\`*_[]|~" else letter for letter in text)


__all__ = ["summary_markdown"]
