"""The page on tract's releases is that of the tables, and names behaviours that exist."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from packaging.version import Version

from t2n_core.nnef.releases import ALL_RELEASES, Releases
from t2n_core.nnef.tract.quirks.hazards import HAZARDS
from t2n_core.nnef.tract.quirks.table import QUIRKS
from t2n_core.nnef.tract.traits import TractTraits
from tools.build_spec_tables import known_releases
from tools.errata_table import PAGE, behaviour_table, hazard_table, page, quirk_table, releases_text


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m tools.errata_table writes it anew"


def test_each_entry_has_a_line() -> None:
    tables = {hazard_table(): HAZARDS, quirk_table(): QUIRKS, behaviour_table(): fields(TractTraits)}
    for table, entries in tables.items():
        head, _, *rows = table.splitlines()
        assert len(rows) == len(entries)
        assert all(row.replace(r"\|", "").count("|") == head.count("|") for row in rows)


def test_the_ends_of_ranges_are_releases() -> None:
    ends = {end for one in (*HAZARDS, *QUIRKS) for range in one.releases for end in (range.since, range.before)}
    assert ends - {None} <= {Version(release) for release in known_releases()}


def test_behaviours_that_the_page_names_exist() -> None:
    text = PAGE.read_text("utf-8").partition("| behaviour | written instead |")[2].partition("##")[0]
    named = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert named
    assert named <= {one.name for one in fields(TractTraits)}


@pytest.mark.parametrize(
    ("ranges", "text"),
    [
        ([ALL_RELEASES], "all"),
        ([Releases.of(None, "0.20")], "until 0.19.16"),
        ([Releases.of("0.21", None)], "from 0.21.0 on"),
        ([Releases.of("0.21.6", "0.23.0")], "0.21.6 to 0.22.4"),
        ([Releases.of("0.21.6", "0.21.7")], "0.21.6"),
        ([Releases.of(None, "0.21.6"), Releases.of("0.23.5", None)], "until 0.21.5, and from 0.23.5 on"),
    ],
)
def test_ranges_in_words(ranges: list[Releases], text: str) -> None:
    assert releases_text(*ranges) == text
