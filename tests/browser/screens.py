"""What tests of the page's parts on several screens share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pytest_t2n.records.schema import CellLine, GraphLine
from pytest_t2n.report.write import write_report
from tests.plugin.report.many_records import many_records

CONTRAST = """names => {
  const light = colour => colour.match(/[0-9.]+/g).slice(0, 3).map(Number).map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
  const paper = one => {
    for (; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (!/, 0\\)$/.test(colour)) return colour;
    }
    return getComputedStyle(document.documentElement).backgroundColor;
  };
  return names.flatMap(name => [...document.querySelectorAll(name)]).map(one => {
    const [low, high] = [light(getComputedStyle(one).color), light(paper(one))].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  });
}"""
"""Gives the contrast of text and paper, as WCAG 2 defines it, for each element that one of the selectors finds."""


def open_cell(visit: Any, folder: Path, **fields: Any) -> Any:
    """Write a report whose first cell has these fields, and return its page with the evidence of that cell."""
    records = many_records(20)
    index = next(n for n, record in enumerate(records) if isinstance(record, CellLine))
    first = records[index]
    assert isinstance(first, CellLine)
    records[index] = msgspec.structs.replace(first, **fields)
    write_report([record for record in records if not isinstance(record, GraphLine)], folder)
    page = visit.open(folder / "index.html")
    page.locator(f'#matrix tr:has(th[title="{first.case}"]) .cell').first.click()
    page.wait_for_selector("#evidence:not([hidden]) .facts")
    return page
