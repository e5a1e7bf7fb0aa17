"""The page of the documentation about the archives of two exporters, judged with and without PyTorch."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from packaging.version import Version

from conformance.lab.pages.render import render
from conformance.lab.rows import group_rows

Row = Mapping[str, Any]
_VERDICTS = ("right", "wrong", "refused", "crashed", "timed out", "not evaluated")


def archives_page(rows: Iterable[Row]) -> str:
    """Return the page as Markdown; a row that was judged again takes the place of the earlier one."""
    last = {(row["name"], row["exporter"], row["release"]): row for row in rows}
    latest_rows = [last[key] for key in sorted(last, key=lambda key: (key[1], Version(key[2]), key[0]))]
    groups = group_rows(latest_rows, "exporter", "release")
    shown = {"names": {row["name"] for row in latest_rows}, "verdicts": _VERDICTS, "groups": groups}
    return render("archives", (who, count, agreement, times, cause), **shown, rows=latest_rows)


def who(row: Row) -> str:
    """Return who causes the disagreement of an archive's verdicts; empty if they agree.

    The verdict without PyTorch is that on drawn inputs, and on PyTorch's inputs where drawn ones decide otherwise.
    """
    if row["export"] or "pytorch" not in row or row["definitions"] == row["pytorch"]:
        return ""
    if row["definitions"] == "not evaluated":
        return "not evaluated"
    if row["same_inputs"] == row["pytorch"]:
        return "inputs"
    return "exporter" if row["meaning"] != "right" else "rounding"


def count(rows: Sequence[Row], by: str) -> Counter[str]:
    """Return how many exported archives have each verdict."""
    return Counter(row.get(by, "not evaluated") for row in rows if not row["export"])


def agreement(rows: Sequence[Row]) -> Counter[str]:
    """Return how often each side causes a disagreement, and under an empty text how often there is none."""
    return Counter(who(row) for row in rows if not row["export"] and "pytorch" in row)


def times(rows: Sequence[Row]) -> list[float]:
    """Return how many archives were timed, and the evaluation's time as multiples of the engine's.

    The multiples are of the means, then the median and the largest.
    """
    timed = [row for row in rows if "evaluation_seconds" in row and "run" in row.get("engine_seconds", {})]
    if not timed:
        return []
    engine = [sum(row["engine_seconds"].values()) for row in timed]
    ours = [row["evaluation_seconds"] * 2 for row in timed]  # two sets of inputs, as the engine ran
    ratios = [seconds / other for seconds, other in zip(ours, engine, strict=True)]
    return [len(timed), statistics.mean(ours) / statistics.mean(engine), statistics.median(ratios), max(ratios)]


def cause(row: Row) -> str:
    """Return the first line of what differs."""
    text: str = row["meaning"] if who(row) == "exporter" else row["reason"] or row["pytorch_reason"]
    return text.partition("\n")[0]
