"""What is seen first: names that differ, colours that differ, and the error before its surroundings."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from pytest_t2n.records.schema import CellLine
from pytest_t2n.report.write import write_report
from tests.plugin.report.many_records import many_records

RECORDS = many_records(1_000)


@pytest.mark.parametrize("width", [390, 800, 1400])
def test_a_long_name_is_cut_in_its_middle(visit, tmp_path, width):
    names = [f"test_layers.py::test_a_layer_of_many_options[{'x' * 60}-bias={bias}]" for bias in (True, False)]
    first = next(record for record in many_records(20) if isinstance(record, CellLine))
    cells = [msgspec.structs.replace(first, case=name, nodeid=name) for name in names]
    write_report([*(record for record in many_records(20) if not isinstance(record, CellLine)), *cells], tmp_path)
    visit.page.set_viewport_size({"width": width, "height": 900})
    page = visit.open(tmp_path / "index.html")
    ends = page.locator("#matrix tbody th .cut > :last-child")
    assert {text[-10:] for text in ends.all_inner_texts()} >= {"bias=False", "-bias=True"}
    for index in range(ends.count()):
        end, cell = ends.nth(index).bounding_box(), page.locator("#matrix tbody th:has(.cut)").nth(index).bounding_box()
        assert end["x"] + end["width"] <= cell["x"] + cell["width"] + 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_levels_and_statuses_have_colours_that_differ(visit, tmp_path, scheme):
    write_report(many_records(20), tmp_path)
    visit.page.emulate_media(color_scheme=scheme)
    page = visit.open(tmp_path / "index.html")
    names = [
        "exact",
        "close",
        "approximate",
        "very",
        "super",
        "ultra",
        "weak",
        "mismatch",
        "unsupported",
        "error",
        "crash",
        "timeout",
    ]
    colours = page.evaluate(
        """names => names.map(name => {
            const box = document.createElement("i");
            box.style.color = `var(--${name})`;
            document.body.append(box);
            return getComputedStyle(box).color.match(/[0-9]+/g).map(Number);
        })""",
        names,
    )
    for (name, a), (other, b) in itertools.combinations(zip(names, colours, strict=True), 2):
        assert sum(abs(x - y) for x, y in zip(a, b, strict=True)) >= 40, (name, other, a, b)


def test_the_error_comes_first_in_the_evidence(visit, tmp_path):
    write_report(RECORDS, tmp_path)
    page = visit.open(tmp_path / "index.html")
    page.locator("[data-status=crash]").click()
    page.locator("#matrix .cell.s-crash").first.click()
    page.wait_for_selector("#evidence:not([hidden])")
    message = page.locator("#evidence pre.message").bounding_box()
    assert message["y"] < page.locator("#evidence dl.facts").bounding_box()["y"]


@pytest.mark.parametrize("visit", [{"viewport": {"width": 390, "height": 844}}], indirect=True)
def test_a_phone_shows_filters_behind_a_button(visit, tmp_path):
    write_report(RECORDS, tmp_path)
    page = visit.open(tmp_path / "index.html")
    fields = page.locator("#filters label:not(.wide), #f-status, #f-differs")
    assert not any(field.is_visible() for field in fields.all())
    page.click("#f-more")
    assert all(field.is_visible() for field in fields.all())
    page.select_option("#f-level", "very")
    page.click("#f-more")
    assert page.locator("#f-level").is_hidden()
    assert page.locator("#f-reset").is_visible(), "that something is left out is said all the same"
    approximate = page.locator("#matrix .cell", has_text="approximate").first
    assert approximate.evaluate("one => one.scrollWidth <= one.clientWidth"), "names of levels are not cut"


@pytest.mark.parametrize("width", [390, 1400])
def test_the_edge_of_what_scrolls_sideways_fades(visit, tmp_path, width):
    write_report(RECORDS, tmp_path)
    visit.page.set_viewport_size({"width": width, "height": 900})
    page = visit.open(tmp_path / "index.html")
    fades = "one => getComputedStyle(one).maskImage !== 'none'"
    for name in ("#scroller", "section[aria-labelledby=versions-title] .scroll"):
        box = page.locator(name)
        assert box.evaluate(fades) == (width == 390), name
        box.evaluate("one => { one.scrollLeft = one.scrollWidth }")
        page.wait_for_timeout(50)
        assert not box.evaluate(fades), name
    page.locator("#matrix .cell.l-close").first.click()
    page.wait_for_selector("#evidence:not([hidden]) .facts")
    page.wait_for_timeout(50)
    assert page.locator("#evidence .scroll").first.evaluate(fades), "the outputs are wider than the panel"


def test_a_report_without_single_operators_has_no_such_table(visit, tmp_path):
    several = [
        msgspec.structs.replace(record, ops=["a", "b"]) if isinstance(record, CellLine) else record
        for record in RECORDS
    ]
    write_report(several, tmp_path)
    page = visit.open(tmp_path / "index.html")
    assert page.locator("#support-title, a[href='#support-title']").count() == 0
    causes, main = (page.locator(name).bounding_box() for name in ("section[aria-labelledby=causes-title]", "main"))
    assert causes["width"] > 0.9 * main["width"]
