"""Every row of the matrix is drawn, at every height of the window and however the height of the grid changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_t2n.report.matrix import Matrix
from pytest_t2n.report.write import write_report
from tests.plugin.report.many_records import LABELS, many_records

SIZES = (5, 13, 400)
"""Cases of the matrices: always in view, in view in a high window, and never all in view."""
HEIGHTS = (320, 480, 600, 720, 768, 900, 1000, 1080, 1440, 2160)
"""Of the window, in pixels."""

WALK = """async () => {
  const scroller = document.querySelector('#scroller');
  const drawn = new Set();
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  scroller.scrollTop = 0;
  for (let before = -1; scroller.scrollTop !== before; ) {
    await frame();
    for (const name of scroller.querySelectorAll('tr.line-row th')) drawn.add(name.title);
    before = scroller.scrollTop;
    scroller.scrollTop += Math.max(28, scroller.clientHeight / 2);
  }
  await frame();
  scroller.scrollIntoView({ block: 'end', behavior: 'instant' });
  const rows = scroller.querySelectorAll('tr.line-row');
  const last = rows[rows.length - 1];
  const box = last.querySelector('th').getBoundingClientRect();
  const seen = document.elementFromPoint(box.left + 40, box.top + box.height / 2);
  const end = scroller.querySelector('table').ariaRowCount;
  return { drawn: [...drawn], last: last.contains(seen) ? last.ariaRowIndex : '', end };
}"""
"""Scrolls the grid to its end. Gives the rows drawn on the way, and the numbers of the last one in view and of all."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], tuple[Path, list[str]]]:
    """A function from a number of cases to their report, and their names in its order."""
    made: dict[int, tuple[Path, list[str]]] = {}

    def find(cases: int) -> tuple[Path, list[str]]:
        if cases not in made:
            directory = tmp_path_factory.mktemp(f"cases{cases}")
            records = many_records(cases * len(LABELS))
            write_report(records, directory)
            made[cases] = directory / "index.html", [row.case for row in Matrix.of(records).rows]
        return made[cases]

    return find


def check(page, cases):
    walk = page.evaluate(WALK)
    assert sorted(walk["drawn"]) == sorted(cases)
    assert walk["last"] == walk["end"], "the last row is in view"


@pytest.mark.parametrize("cases", SIZES)
@pytest.mark.parametrize("height", HEIGHTS)
def test_every_row_is_drawn_and_the_last_one_is_in_view_at_the_end(visit, report, height, cases):
    index, names = report(cases)
    visit.page.set_viewport_size({"width": 1400, "height": height})
    check(visit.open(index), names)


@pytest.mark.parametrize("cases", SIZES)
def test_rows_are_drawn_when_the_grid_grows(visit, report, cases):
    index, names = report(cases)
    visit.page.set_viewport_size({"width": 1400, "height": 320})
    page = visit.open(index)
    page.set_viewport_size({"width": 1400, "height": 1440})
    check(page, names)
    page.evaluate("document.querySelector('#scroller').scrollTop = 0")
    fold = page.locator("#matrix .fold").first
    fold.click()
    fold.click()
    check(page, names)
    page.fill("#f-q", "nothing has this name")
    page.fill("#f-q", "")
    check(page, names)
