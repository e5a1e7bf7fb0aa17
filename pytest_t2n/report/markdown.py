"""The matrix in about sixty lines of Markdown, for a CI step."""

from __future__ import annotations

from itertools import islice

from pytest_t2n.records.changes import ChangeList, describe_counts, each_change
from pytest_t2n.records.counts import TokenCount, authors_text
from pytest_t2n.records.folder import SUMMARY_TITLE
from pytest_t2n.records.schema import CellLine
from pytest_t2n.report.causes import message_gist
from pytest_t2n.report.columns import ColumnFold
from pytest_t2n.report.matrix import Matrix, Row, is_surprise
from pytest_t2n.report.tiers import TierFold
from t2n_core.parity.stage import Status
from t2n_core.text import in_markdown

_MOST_TIERS = 300
"""Most changes between kernels for the page."""
_FAILURES = 40
_CHANGES = 12
_MESSAGE = 120


class SummaryFold:
    """The counts of the summary, with the first failures and the first changes between kernels."""

    def __init__(self, matrix: Matrix) -> None:
        self.columns = ColumnFold(matrix)
        self.tiers = TierFold(matrix, _MOST_TIERS)
        self.tokens: dict[str, TokenCount] = {}
        """Tokens of models that generate, by the title of the column."""
        self.failures: list[tuple[str, ...]] = []
        """The fields of the first unexpected failures."""

    def add(self, row: Row) -> None:
        """Add a row."""
        self.columns.add(row)
        self.tiers.add(row)
        for cell in row.present:
            if cell.tokens:
                self.tokens[cell.engine] = self.tokens.get(cell.engine, TokenCount()).plus(cell.tokens)
            if len(self.failures) < _FAILURES and is_surprise(cell):
                self.failures.append(_failure(cell))


def summary_markdown(matrix: Matrix, baseline: Matrix | None = None, numbers: SummaryFold | None = None) -> str:
    """Return changes since the baseline, counts per engine version, then unexpected failures.

    `numbers` are the matrix's, if the caller has them.
    """
    if numbers is None:
        numbers = SummaryFold(matrix)
        matrix.fold(numbers)
    counts = numbers.columns.statuses
    statuses = [status.value for status in Status if counts[status.value]]
    lines = [SUMMARY_TITLE, ""]
    notice = [f"**{in_markdown(matrix.completeness.notice)}**", ""] if matrix.completeness.notice else []
    lines += notice
    lines.append(f"{len(matrix.rows)} cases on {len(matrix.columns)} engine versions, {counts.total()} cells")
    if numbers.columns.reused:
        lines[-1] += f", {numbers.columns.reused} of them from earlier sessions"
    authors = authors_text(numbers.columns.authors)
    lines += ["", f"By the definitions of the operators: {authors}"] if authors else []
    changes = _changes(baseline, matrix) if baseline is not None else []
    kernels = _kernels(numbers.tiers)
    lines += kernels + changes
    shown = _FAILURES - len(changes) - len(kernels) - len(notice) - 2 * bool(authors)
    heads = [*statuses, *(["tokens"] if numbers.tokens else [])]
    lines += ["", f"| engine | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(heads)}"]
    for column in numbers.columns.columns():
        words = [str(column.statuses[status] or "") for status in statuses]
        words += [str(numbers.tokens.get(column.engine.title, ""))] if numbers.tokens else []
        lines.append(f"| {in_markdown(column.engine.title)} | {' | '.join(words)} |")
    surprises = numbers.columns.surprises
    if surprises:
        lines += ["", "| case | engine | status | stage | message |", "| --- | --- | --- | --- | --- |"]
        lines += [f"| {' | '.join(in_markdown(word) for word in words)} |" for words in numbers.failures[:shown]]
    if surprises > shown:
        lines += ["", f"… and {surprises - shown} more; see `index.html`"]
    return "\n".join(lines) + "\n"


def _kernels(tiers: TierFold) -> list[str]:
    """Return the cases whose status differs between the kernel tiers of a release."""
    if not tiers.releases:
        return []
    counts = f"{tiers.flips} have another status, {tiers.others} only another level"
    lines = ["", f"With other kernels of the same release: {counts}"]
    differing = [change for change in tiers.changes if change.status_differs][:_CHANGES]
    if differing:
        lines += ["", "| case | release | worst | each tier |", "| --- | --- | --- | --- |"]
    for change in differing:
        words = (change.case, change.release, change.worst, change.text)
        lines.append(f"| {' | '.join(in_markdown(word) for word in words)} |")
    if tiers.flips > _CHANGES:
        lines += ["", f"… and {tiers.flips - _CHANGES} more; see `index.html`"]
    return lines


def _changes(before: Matrix, after: Matrix) -> list[str]:
    with ChangeList(each_change(before.by_case, after.by_case)) as changes:
        lines = ["", f"Since the baseline: {describe_counts(changes.counts)}"]
        if before.completeness.notice:
            lines[-1] += f" (the baseline is incomplete: {in_markdown(before.completeness.notice)})"
        if not changes:
            return lines
        lines += ["", "| change | case | engine | before | after |", "| --- | --- | --- | --- | --- |"]
        for fields in islice(changes, _CHANGES):
            words = " | ".join(in_markdown(fields[name]) for name in ("kind", "case", "column", "before", "after"))
            lines.append(f"| {words} |")
        if len(changes) > _CHANGES:
            lines += ["", f"… and {len(changes) - _CHANGES} more changes"]
    return lines


def _failure(cell: CellLine) -> tuple[str, ...]:
    message = message_gist(cell)
    if len(message) > _MESSAGE:
        message = f"{message[:_MESSAGE]}…"
    return cell.case, cell.engine, cell.status, cell.stage, message
