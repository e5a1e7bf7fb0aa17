"""Tables between the marks of pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import int8_table, weights_table
from conformance.marked_tables import END, show, with_table


@pytest.mark.parametrize("begin", [int8_table.BEGIN, weights_table.BEGIN])
def test_a_page_takes_the_table_between_its_marks(
    begin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, wanted = f"a\n{begin}\nold\n{END}\nz\n", f"a\n{begin}\n\n| new |\n\n{END}\nz\n"
    assert with_table(page, begin, "| new |") == wanted
    with pytest.raises(ValueError, match="the page has no"):
        with_table("a", begin, "| new |")
    (tmp_path / "page.md").write_text(page)
    show("| new |", begin, tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text() == wanted
    show("| new |", begin, None)
    assert capsys.readouterr().out == "| new |\n"
