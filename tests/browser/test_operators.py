"""Operators of optimised graphs: in the evidence of a cell, and as changes, at all widths, light and dark."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from pytest_t2n.records.changes import compare_columns, compare_matrices
from pytest_t2n.records.schema import CellLine, Record, cells_of
from pytest_t2n.report.write import write_report
from tests.browser.screens import CONTRAST, open_cell
from tests.plugin.report.many_records import LABELS, many_records

CHANGE = "#changes details:has(summary:has-text('other operators'))"


def with_operators(records: list[Record], **by_label: dict[str, int]) -> list[Record]:
    """Return the records of one case whose cells pass, with these operators by the last number of the release."""
    first = next(record for record in records if isinstance(record, CellLine)).case
    case_records = [record for record in records if not isinstance(record, CellLine) or record.case == first]
    return [
        msgspec.structs.replace(
            record, status="pass", level="close", operators=by_label.get(f"v{record.version[2:4]}", {})
        )
        if isinstance(record, CellLine)
        else record
        for record in case_records
    ]


def test_operators_of_a_cell(screen, tmp_path):
    operators = {"Add": 1, "OptMatMul": 12, "Scan/" + "OptBinChain(Max+Add)" * 5: 2}
    page = open_cell(screen, tmp_path, operators=operators, status="pass", error=None)
    table = page.locator("#evidence .operators table")
    rows = [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]
    assert rows == [["OptMatMul", "12"], [list(operators)[2], "2"], ["Add", "1"]]
    assert table.locator("thead th").all_inner_texts() == ["operator", "nodes"]
    assert min(page.evaluate(CONTRAST, ["#evidence .operators th", "#evidence .operators td"])) >= 4.5


def test_operators_that_are_not_known(screen, tmp_path):
    facts = {"operators_unknown": "no function lists them"}
    page = open_cell(screen, tmp_path, operators={}, facts=facts, status="pass", error=None)
    note = page.locator("#evidence .note", has_text="Not known: no function lists them")
    assert note.is_visible()
    assert page.locator("#evidence .operators").count() == 0
    assert min(page.evaluate(CONTRAST, ["#evidence .note"])) >= 4.5


def test_a_lost_fusion_between_releases(screen, tmp_path):
    records = with_operators(many_records(5), v22={"EinSum": 4, "OptMatMul": 4, "Add": 1},
                             v23={"EinSum": 6, "OptMatMul": 2, "Add": 1})  # fmt: skip
    write_report(records, tmp_path)
    page = screen.open(tmp_path / "index.html")
    item = page.locator(f"{CHANGE} li")
    assert item.count() == 1
    assert item.locator(".operators").inner_text() == "EinSum 4 → 6, OptMatMul 4 → 2"
    box = item.locator(".operators").bounding_box()
    assert box["x"] + box["width"] <= page.viewport_size["width"]
    assert min(page.evaluate(CONTRAST, ["#changes li small", "#changes li .tag"])) >= 4.5
    item.locator("button").click()
    page.wait_for_selector("#evidence:not([hidden]) .operators")
    rows = [row.locator("th, td").all_inner_texts() for row in page.locator("#evidence .operators tbody tr").all()]
    assert rows == [["EinSum", "6", "4 → 6"], ["OptMatMul", "2", "4 → 2"], ["Add", "1", ""]]
    assert page.locator("#evidence .operators thead th").all_inner_texts()[2] == "since tract 0.22.4"


def test_changes_of_operators_are_those_of_the_command_line(visit, tmp_path):
    before, after = many_records(300, seed=8), many_records(300)
    write_report(after, tmp_path, before)
    page = visit.open(tmp_path / "index.html")
    expected = Counter(change.kind.value for change in compare_matrices(cells_of(before), cells_of(after)))
    assert count(page) == expected["operators"]
    page.select_option("#before", "1")
    page.select_option("#after", "2")
    titles = [f"tract {label}" for label in LABELS]
    expected = Counter(change.kind.value for change in compare_columns(cells_of(after), titles[1], titles[2]))
    assert count(page) == expected["operators"] > 0


def count(page):
    return int(page.locator("#changes .tally li", has_text="other operators").inner_text().split()[0])


@pytest.mark.parametrize("shown", [False, True])
def test_a_baseline_without_operators_has_no_such_changes(visit, tmp_path, shown):
    before = with_operators(many_records(5), v22={"Add": 2} if shown else {})
    write_report(with_operators(many_records(5), v22={"Add": 1}), tmp_path, before)
    assert count(visit.open(tmp_path / "index.html")) == shown
