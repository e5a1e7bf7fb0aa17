"""Mean error and SQNR stand beside the largest error of each output, on screens of all widths, light and dark."""

from __future__ import annotations

from pytest_t2n.records.schema import OutputLine
from tests.browser.screens import CONTRAST, open_cell

OUTPUTS = [
    OutputLine("y", "float32", [2], "pass", "close", "close", max_abs=0.25, mean_abs=0.03125, sqnr=41.5249),
    OutputLine("same", "float32", [3], "pass", "close", "exact", mean_abs=0.0, sqnr="inf"),
    OutputLine("place", "int64", [3], "pass", "close", "exact"),
]


def test_mean_error_and_sqnr_of_each_output(screen, tmp_path):
    page = open_cell(screen, tmp_path, outputs=OUTPUTS)
    table = page.locator("#evidence table", has_text="max abs")
    heads = table.locator("thead th").all_inner_texts()
    rows = [
        dict(zip(heads, row.locator("th, td").all_inner_texts(), strict=True))
        for row in table.locator("tbody tr").all()
    ]
    assert [(row["max abs"], row["mean abs"], row["SQNR"]) for row in rows] == [
        ("0.25", "0.03125", "41.525 dB"),
        ("0", "0", "inf dB"),
        ("0", "\N{EN DASH}", "\N{EN DASH}"),
    ]
    cell = table.locator("td", has_text="41.525 dB")
    assert cell.evaluate("one => one.scrollWidth <= one.clientWidth"), "no text is cut"
    cell.scroll_into_view_if_needed()
    box, panel = cell.bounding_box(), page.locator("#evidence").bounding_box()
    assert panel["x"] <= box["x"] < box["x"] + box["width"] <= panel["x"] + panel["width"], "it can be scrolled to"
    assert min(page.evaluate(CONTRAST, ["#evidence table.plain th", "#evidence table.plain td"])) >= 4.5
