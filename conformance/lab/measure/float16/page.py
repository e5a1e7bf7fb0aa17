"""The page of the documentation with the tables of float16."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import Version

from conformance.lab.pages.tables import table
from conformance.lab.rows import Row
from t2n_core.parity.judging.float16_level import LARGEST

CLOSE = 1.05
"""Ratio of times up to which two archives are as fast."""


def page(stored: Sequence[Row], auto: Sequence[Row], machine: str) -> str:
    """Return the page for results of `conformance.lab.measure.float16`; of what was not measured there is no table."""
    parts = [
        f"""# Float16 on architectures

[How to](../how-to/float16.md) use it is a page of its own. The architectures are those of the suite `models`: small,
with random weights of real spread. Times are those of the processor, in turns with the archive in float32, as the
median of the ratios of neighbours; on {machine}."""
    ]
    if stored:
        parts += ["## Stored float16", _stored_words(stored), _by_release(stored), _stored_table(stored)]
    if auto:
        parts += ["## Float16 plans that `auto` finds", _auto_words(auto), _auto_table(auto)]
    return "\n\n".join(parts) + "\n"


def _releases(rows: Sequence[Row]) -> list[str]:
    return sorted({row["version"] for row in rows}, key=Version)


def _stored_words(rows: Sequence[Row]) -> str:
    names = {row["name"] for row in rows}
    held = sum(row.get("status") == "pass" for row in rows)
    counts = f"{len(names)} architectures, {len(rows)} archives"
    return f"""`weights="float16"`: {counts}, of which {held} compute what the model with the rounded
weights does, at `approximate`. Vectors stay float32, and in nets as small as these they are more of the weights than in
others; so does what is computed from weights at export, such as weight norms and tables that are resized."""


def _by_release(rows: Sequence[Row]) -> str:
    lines = []
    for version in _releases(rows):
        mine = [row for row in rows if row["version"] == version and "ratio" in row]
        ratios = sorted(row["ratio"] for row in mine)
        slow = ", ".join(f"{row['name']} {row['ratio']:.2f}" for row in mine if row["ratio"] > CLOSE)
        shares = statistics.median(row["weights"][1] / row["weights"][0] for row in mine)
        figures = [f"{statistics.median(ratios):.3f}", f"{ratios[0]:.2f}", f"{ratios[-1]:.2f}"]
        lines.append([version, str(len(mine)), f"{shares:.3f}", *figures, slow or "none"])
    head = ["tract", "architectures", "weights, median", "time, median", "least", "most", "more than 5 % slower"]
    return table(head, lines, spaced=True)


def _stored_table(rows: Sequence[Row]) -> str:
    releases = _releases(rows)
    lines = []
    for name in sorted({row["name"] for row in rows}):
        mine = {row["version"]: row for row in rows if row["name"] == name and "ratio" in row}
        if not mine:
            continue
        newest = mine[max(mine, key=Version)]
        before, after = newest["weights"]
        ratios = [f"{mine[version]['ratio']:.2f}" if version in mine else "" for version in releases]
        lines.append([name, f"{before / 1e3:.0f}", f"{after / before:.2f}", *ratios])
    head = ["architecture", "weights, kB", "as float16", *(f"time, {version}" for version in releases)]
    return table(head, lines, spaced=True)


def _auto_words(rows: Sequence[Row]) -> str:
    searches = [_Search.of(row) for row in rows if "plan" in row]
    held = sum(bool(row.get("holds")) for row in rows)
    shares = sorted(one.float16 / one.units for one in searches)
    times = sorted(row["ratio"] for row in rows if "ratio" in row)
    few = [one for one in searches if one.float16 < one.units / 2]
    off = min((one.whole for one in few), default=0.0)
    releases = ", ".join(_releases(rows))
    counts = f"{len(rows)} architectures, {len(searches)} plans"
    complete = sum(one.float16 == one.units for one in searches)
    words = f"""`precision="auto"` on tract {releases}: {counts}, of which {held} hold the level with four inputs of
no search as well. The share of operators in float16 is {statistics.median(shares):.0%} in the median; in {complete}
architectures it is all of them, in {len(few)} less than half. A run takes {times[0]:.1f} to {times[-1]:.1f} times as
long as in float32, {statistics.median(times):.1f} times in the median.

The error is the largest with those inputs, as a share of the largest number of its output; the level is {LARGEST:g}.
Beside it is the error with all operators in float16 that can be, with the inputs of the search, which allows half the
level. The time of a run is a multiple of the time in float32. Seconds are those of a busy machine."""
    if not few:
        return words
    names = ", ".join(sorted(one.name for one in few))
    return f"""{words}

With all in float16 the errors are at least {off:.4f} where less than half of the operators are, and errors add up by
squares: {names}."""


@dataclass(frozen=True, slots=True)
class _Search:
    """What a search reported."""

    name: str
    float16: int
    units: int
    whole: float
    """Error with all operators in float16."""
    runs: int

    @classmethod
    def of(cls, row: Row) -> _Search:
        found = re.search(r"(\d+) of (\d+) operators.*\((\S+) with all\).* after (\d+) runs", row["told"])
        assert found is not None, row["told"]
        return cls(row["name"], int(found[1]), int(found[2]), float(found[3]), int(found[4]))


def _auto_table(rows: Sequence[Row]) -> str:
    lines = []
    for row in sorted(rows, key=lambda row: row["name"]):
        if "plan" not in row:
            lines.append([row["name"], *[""] * 6, row["failed"].partition("\n")[0][:100]])
            continue
        one = _Search.of(row)
        wide = sorted({name for entry in row["plan"].get("float32", []) for name in entry["operators"]})
        ratio = f"{row['ratio']:.1f}" if "ratio" in row else ""
        errors = [f"{max(row['peaks'], default=0):.4f}", f"{one.whole:.4f}"]
        shown = [*errors, ratio, str(one.runs), f"{row['seconds']:.0f}", ", ".join(wide)]
        lines.append([one.name, f"{one.float16} of {one.units}", *shown])
    head = ["architecture", "in float16", "error", "with all", "time", "runs", "seconds of search", "in float32"]
    return table(head, lines, spaced=True)
