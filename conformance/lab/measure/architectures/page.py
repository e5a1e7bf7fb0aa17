"""The table of the comparison of architectures: ratios to the better one of the other exporters' files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from conformance.lab.pages.render import render

Row = dict[str, Any]
OTHERS = ("torch-to-nnef", "torch-onnx")
SLOWER = 1.05
"""What is slower by more is listed with the operators that differ."""


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
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["release"], row["sizes"]), []).append(row)
    functions = (best_of, ratio, at_most, alone, slowest_first, differing)
    return render("architectures", functions, groups=sorted(groups.items()), SLOWER=SLOWER).rstrip("\n")


def at_most(rows: Sequence[Row], figure: str, most: float) -> str:
    """Return how many rows have at most a ratio, of those that have one."""
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
