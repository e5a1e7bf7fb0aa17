"""The table of the comparison of architectures: ratios to the better one of the other exporters' files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from conformance.lab.pages.render import render
from conformance.lab.rows import group_rows

Row = dict[str, Any]
OTHERS = ("torch-to-nnef", "torch-onnx")
SLOWER = 1.05
"""What is slower by more is listed with the operators that differ."""
WIDTH, HEIGHT = 640, 320
LARGEST = 4.0
COLOURS = ("#0b6e99", "#7fb8d1", "#b3541e", "#e3a983")


def best_of(row: Row, figure: str) -> tuple[str, float] | None:
    """Return the other exporter with the smaller figure, and the figure; None where no other file runs."""
    figures = {exporter: row[exporter][figure] for exporter in OTHERS if row.get(exporter, {}).get(figure)}
    return min(figures.items(), key=lambda item: item[1]) if figures else None


def ratio(row: Row, figure: str) -> float | None:
    """Return our figure as a multiple of the better other one's; None where there is nothing to compare."""
    best, ours = best_of(row, figure), row["ours"].get(figure)
    return None if best is None or not ours else float(ours / best[1])


def comparison(rows: Sequence[Row]) -> str:
    """Return for each release and kind of sizes the counts, the nets, and what the slower ones do otherwise."""
    functions = (best_of, ratio, at_most, alone, slowest_first, differing)
    return render(
        "architectures", functions, groups=sorted(group_rows(rows, "release", "sizes").items()), SLOWER=SLOWER
    ).rstrip("\n")


def plot(rows: Sequence[Row]) -> str:
    """Return an SVG of our time as a multiple of the better other file's, on a logarithmic axis, by net.

    The nets of each release and kind of sizes stand in the order of their ratios.
    """
    series = []
    for (release, sizes), group in sorted(group_rows(rows, "release", "sizes").items()):
        ratios = sorted((value, row["name"]) for row in group if (value := ratio(row, "least_cpu_ms")) is not None)
        step = WIDTH / max(1, len(ratios))
        points = [
            (name, value, 40 + step * (index + 0.5), _height(value)) for index, (value, name) in enumerate(ratios)
        ]
        series.append((f"{release}, {sizes} sizes", points))
    ticks = [(value, _height(value)) for value in (0.25, 0.5, 0.8, 1.0, 1.2, 2.0, LARGEST)]
    return render("architectures.svg", series=series, ticks=ticks, WIDTH=WIDTH, HEIGHT=HEIGHT, COLOURS=COLOURS)


def _height(value: float) -> float:
    """Return the vertical place of a ratio, which is drawn at most at `LARGEST` and at least at its inverse."""
    share = math.log(min(max(value, 1 / LARGEST), LARGEST)) / math.log(LARGEST)
    return 20 + HEIGHT * (1 - share) / 2


def at_most(rows: Sequence[Row], figure: str, most: float) -> str:
    """Return how many of the rows with a ratio have at most `most`."""
    values = [value for row in rows if (value := ratio(row, figure)) is not None]
    return f"{sum(value <= most for value in values)} of {len(values)}"


def alone(rows: Sequence[Row]) -> int:
    """Return how many nets run from our file, and from no other."""
    return sum("error" not in row["ours"] and best_of(row, "least_cpu_ms") is None for row in rows)


def slowest_first(rows: Sequence[Row]) -> list[Row]:
    """Return rows by our time as a multiple of the better other one's."""
    return sorted(rows, key=lambda row: ratio(row, "least_cpu_ms") or 0.0, reverse=True)


def differing(row: Row) -> str:
    """Return the operators that our file has more or fewer of than the better other one."""
    best = best_of(row, "least_cpu_ms")
    assert best is not None
    more = Counter(row["ours"]["operators"])
    more.subtract(row[best[0]]["operators"])
    names = ", ".join(f"{name} {count:+d}" for name, count in more.most_common() if count)
    return f"{best[0]}'s: {names or 'the same operators'}"
