"""Long tables of generated pages as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.lab.pages.long_tables import LONG, rows_of, split, write_page

SHORT = "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
ROWS = [[f"`op{index}`", "1.00 x", ""] for index in range(LONG)]
LONG_TABLE = "| operator | time | note |\n|---|---|---|\n" + "".join(f"| {' | '.join(row)} |\n" for row in ROWS)
PAGE = f"# Page\n\n{SHORT}\n## Times, all\n\n{LONG_TABLE}\nAfter it.\n"


def test_long_tables_become_files(tmp_path: Path) -> None:
    page, tables = tmp_path / "docs" / "page.md", tmp_path / "tables"
    write_page(page, PAGE, tables)
    assert [path.name for path in tables.iterdir()] == ["page-times-all.csv"]
    text = page.read_text("utf-8")
    assert SHORT in text
    assert "op1" not in text
    assert text.endswith("\n\nAfter it.\n")
    assert list(rows_of(page, tables)) == ROWS


def test_tables_that_a_page_no_longer_has_are_removed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    write_page(page, PAGE, tmp_path)
    write_page(page, SHORT, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.md"]
    assert page.read_text("utf-8") == SHORT


def test_two_long_tables_need_two_headings() -> None:
    with pytest.raises(ValueError, match="under one heading"):
        split(f"# Page\n\n{LONG_TABLE}\n{LONG_TABLE}", "page")
