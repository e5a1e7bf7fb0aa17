"""Tokens of models that generate: in the grid, in words for a reader of the screen, and in the evidence."""

from __future__ import annotations

import msgspec

from pytest_t2n.records.schema import CellLine
from pytest_t2n.report.write import write_report
from tests.plugin.report.many_records import many_records


def test_tokens_stand_in_their_cell_alone(visit, tmp_path):
    records = many_records(100)
    index = next(n for n, record in enumerate(records) if isinstance(record, CellLine) and record.status == "pass")
    records[index] = msgspec.structs.replace(records[index], tokens="41/48")
    write_report(records, tmp_path)
    page = visit.open(tmp_path / "index.html")
    cell = page.locator("#matrix .cell", has_text="41/48 tokens")
    assert cell.count() == 1
    assert cell.get_attribute("aria-label").endswith(f"pass, {records[index].level}, 41/48 tokens")
    cell.click()
    page.wait_for_selector("#evidence:not([hidden])")
    assert "41/48 right" in page.locator("#evidence").inner_text()
