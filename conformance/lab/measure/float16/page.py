"""The page of the documentation with the tables of float16."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from packaging.version import Version

from conformance.lab.pages.render import render
from conformance.lab.rows import Row
from t2n_core.parity.judging.float16_level import LARGEST

CLOSE = 1.05
"""Ratio of times up to which two archives are as fast."""


def page(stored: Sequence[Row], auto: Sequence[Row], machine: str) -> str:
    """Return the page for results of `conformance.lab.measure.float16`; of what was not measured there is no table."""
    timed = [{**row, "share": row["weights"][1] / row["weights"][0]} for row in stored if "ratio" in row]
    searches = [Search.of(row) for row in auto if "plan" in row]
    figures = {
        "passed": sum(row.get("status") == "pass" for row in stored),
        "held": sum(bool(row.get("holds")) for row in auto),
        "shares": [search.float16 / search.units for search in searches],
        "times": sorted(row["ratio"] for row in auto if "ratio" in row),
        "few": sorted(
            (search for search in searches if search.float16 < search.units / 2), key=lambda search: search.row["name"]
        ),
        "complete": sum(search.float16 == search.units for search in searches),
    }
    rows = {"stored": by_name(stored), "timed": timed, "auto": by_name(auto), "searches": searches}
    return render("float16", (median, releases, of), **rows, **figures, machine=machine, LARGEST=LARGEST, CLOSE=CLOSE)


def by_name(rows: Sequence[Row]) -> list[Row]:
    """Return rows in the order of their architectures."""
    return sorted(rows, key=lambda row: row["name"])


def of(rows: Sequence[Row], key: str, value: str) -> list[Row]:
    """Return the rows of one release or architecture, by release."""
    return sorted((row for row in rows if row[key] == value), key=lambda row: Version(row["version"]))


def releases(rows: Sequence[Row]) -> list[str]:
    """Return the releases of rows in order."""
    return sorted({row["version"] for row in rows}, key=Version)


@dataclass(frozen=True, slots=True)
class Search:
    """What a search reported."""

    row: Row
    float16: int
    units: int
    whole: float
    """Error with all operators in float16."""
    runs: int

    @classmethod
    def of(cls, row: Row) -> Search:
        """Read the note of an export."""
        match = re.search(r"(\d+) of (\d+) operators.*\((\S+) with all\).* after (\d+) runs", row["told"])
        assert match is not None, row["told"]
        return cls(row, int(match[1]), int(match[2]), float(match[3]), int(match[4]))

    @property
    def wide(self) -> list[str]:
        """The operators that stay float32."""
        return sorted({name for entry in self.row["plan"].get("float32", []) for name in entry["operators"]})
