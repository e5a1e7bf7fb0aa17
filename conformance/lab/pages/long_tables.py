"""Keep the long tables of a generated page as CSV files; the site reads them in where the page names them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

LONG = 60
"""Rows from which on a table is a file."""
_READ = "{{{{ read_csv('{name}', dtype='str', keep_default_na=False, disable_numparse=True) }}}}"
"""What the site's plugin mkdocs-table-reader replaces by the table; every cell is text."""
_TABLE = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
_BETWEEN = re.compile(r"(?<!\\)\|")


def write_page(page: Path, text: str, tables: Path) -> None:
    """Write a page and its long tables, and remove tables that an earlier version of the page had.

    Args:
        page: the Markdown file.
        text: Markdown with all tables in it.
        tables: the folder of the tables, which the site's configuration names as `data_path`.
    """
    short, files = split(text, page.stem)
    for folder in (page.parent, tables):
        folder.mkdir(parents=True, exist_ok=True)
    for old in tables.glob(f"{page.stem}-*.csv"):
        if old.name not in files:
            old.unlink()
    for name, content in files.items():
        (tables / name).write_text(content, encoding="utf-8")
    page.write_text(short, encoding="utf-8")


def split(text: str, stem: str) -> tuple[str, Mapping[str, str]]:
    """Return a page with references instead of its long tables, and name -> CSV of these.

    A table is named after the page and the heading above it.
    """
    files: dict[str, str] = {}

    def shorten(match: re.Match[str]) -> str:
        header, _, *rows = map(_cells, match[0].splitlines())
        if len(rows) < LONG:
            return match[0]
        name = f"{stem}-{_heading(text[: match.start()])}.csv"
        if name in files:
            raise ValueError(f"two long tables under one heading: {name}")
        files[name] = _csv([header, *rows])
        return _READ.format(name=name) + "\n"

    return _TABLE.sub(shorten, text), files


def rows_of(page: Path, tables: Path) -> Iterator[Sequence[str]]:
    """Yield the rows of all tables that a page reads in, without their headers."""
    for name in re.findall(r"read_csv\('([^']+)'", page.read_text("utf-8")):
        with (tables / name).open(encoding="utf-8", newline="") as file:
            yield from list(csv.reader(file))[1:]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _BETWEEN.split(line)[1:-1]]


def _heading(before: str) -> str:
    title = re.findall(r"^#+ (.+)$", before, re.MULTILINE)[-1]
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def _csv(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
