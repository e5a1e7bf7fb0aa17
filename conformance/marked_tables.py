"""Tables that commands write into pages of the documentation, each between two marks of its own."""

from __future__ import annotations

from pathlib import Path

END = "<!-- end of the table -->"


def with_table(page: str, begin: str, table: str) -> str:
    """Return a page with the table between the mark `begin` and the next end. Raises ValueError if it has none."""
    before, found, rest = page.partition(begin)
    _, end, after = rest.partition(END)
    if not found or not end:
        raise ValueError(f"the page has no {begin} … {END}")
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


def show(table: str, begin: str, page: Path | None) -> None:
    """Put a table between its marks in a page, or print it if there is no page."""
    if page is None:
        print(table)
    else:
        page.write_text(with_table(page.read_text("utf-8"), begin, table), "utf-8")


__all__ = ["END", "show", "with_table"]
