"""Make tables in Markdown, and write them between two marks in documentation pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

END = "<!-- end of the table -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown without a newline at its end. A bar inside a cell is escaped."""
    return _join(head, f"|{'---|' * len(head)}", rows)


def figures_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose columns after the first hold figures, aligned to the right."""
    return _join(head, f"| --- |{' ---: |' * (len(head) - 1)}", rows)


def _join(head: Sequence[str], rule: str, rows: Iterable[Sequence[str]]) -> str:
    first, *others = (f"| {' | '.join(map(escape, line))} |" for line in (head, *rows))
    return "\n".join([first, rule, *others])


def escape(cell: str) -> str:
    """Return the text of a cell, with its bars escaped."""
    return cell.replace("|", r"\|")


def with_table(page: str, begin: str, table: str) -> str:
    """Return a page with the table between the mark `begin` and the next end. Raises ValueError if one is missing."""
    before, start, rest = page.partition(begin)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"the page has no {begin} … {END}")
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


def show(table: str, begin: str, page: Path | None) -> None:
    """Put a table between its marks in a page, or print it if there is no page."""
    if page is None:
        print(table)
    else:
        page.write_text(with_table(page.read_text("utf-8"), begin, table), "utf-8")
