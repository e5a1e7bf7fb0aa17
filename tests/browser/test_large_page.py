"""The page of a large matrix: aggregates and grid in one file, evidence and graphs in a folder beside it."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_t2n.report.matrix import Matrix
from pytest_t2n.report.write import write_report
from tests.plugin.report.many_records import many_records

RECORDS = many_records(1_000)
MATRIX = Matrix.of(RECORDS)


def test_the_parts_of_a_large_page_are_loaded_when_they_are_needed(browser, tmp_path, monkeypatch):
    monkeypatch.setattr("pytest_t2n.report.page._ONE_FILE", 900)
    write_report(RECORDS, tmp_path)
    page = browser.new_page()
    complaints, requests = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: requests.append(Path(request.url).name))
    page.goto((tmp_path / "index.html").as_uri())
    page.wait_for_selector("html[data-ready]")
    assert requests == ["index.html"]
    assert int(page.text_content("#shown").split()[0]) == 200
    row = next(row for row in MATRIX.rows if row.cells[0].status == "crash")
    page.fill("#f-q", row.case)
    page.locator("#matrix .cell").first.click()
    page.wait_for_selector("#evidence:not([hidden])")
    assert row.cells[0].error.message in page.inner_text("#evidence")
    page.locator("#evidence summary", has_text="Graph").click()
    page.wait_for_selector("#evidence .graph:has-text('graph net')")
    assert sorted(re.sub(r"\d+", "", name) for name in requests[1:]) == ["evidence-.js", "graphs-.js"]
    for part in tmp_path.glob("page-*/*.js"):
        part.unlink()
    page.reload()  # the address says which cell is open
    page.wait_for_selector("#evidence:not([hidden])")
    assert "is missing); it is in matrix.jsonl, too" in page.inner_text("#evidence")
    assert [complaint for complaint in complaints if "ERR_FILE_NOT_FOUND" not in complaint] == []
    page.close()
    write_report(many_records(800), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == []
