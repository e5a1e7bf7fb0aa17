"""The table of the comparison of architectures: ratios to the better one of the other exporters' files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from conformance.lab.pages.tables import figures_table

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
    parts = []
    for release, sizes in sorted({(row["release"], row["sizes"]) for row in rows}):
        group = [row for row in rows if (row["release"], row["sizes"]) == (release, sizes)]
        parts.append(f"### tract {release}, {sizes} sizes\n\n{_counts(group)}\n\n{_nets(group)}{_slower(group)}")
    return "\n\n".join(parts)


def _counts(rows: Sequence[Row]) -> str:
    runs = [value for row in rows if (value := ratio(row, "least_cpu_ms")) is not None]
    loads = [value for row in rows if (value := ratio(row, "load_ms")) is not None]
    failed = [row["name"] for row in rows if "error" in row["ours"]]
    alone = sum("error" not in row["ours"] and best_of(row, "least_cpu_ms") is None for row in rows)
    return (
        f"{len(rows)} nets: {sum(v <= SLOWER for v in runs)} of {len(runs)} run in at most {SLOWER} of the time of the "
        f"better other file, {sum(v <= 1.5 for v in loads)} of {len(loads)} load in at most 1.5 of it; {alone} run "
        f"from our file alone. Without a file of ours that runs: {', '.join(failed) or 'none'}."
    )


def _nets(rows: Sequence[Row]) -> str:
    head = ["net", "run, ms", "run", "load, ms", "load", "first run", "bytes", "peak", "export", "better file"]

    def text(row: Row, figure: str) -> str:
        value = ratio(row, figure)
        return "" if value is None else f"{value:.2f}"

    def plain(row: Row, figure: str) -> str:
        return f"{row['ours'][figure]:.2f}" if figure in row["ours"] else ""

    lines = []
    for row in sorted(rows, key=lambda row: ratio(row, "least_cpu_ms") or 0.0, reverse=True):
        best = best_of(row, "least_cpu_ms")
        lines.append([
            row["name"], plain(row, "least_cpu_ms"), text(row, "least_cpu_ms"), plain(row, "load_ms"),
            *(text(row, figure) for figure in ("load_ms", "first_ms", "bytes", "peak_bytes", "export_seconds")),
            best[0] if best else "",
        ])  # fmt: skip
    return figures_table(head, lines)


def _slower(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        value, best = ratio(row, "least_cpu_ms"), best_of(row, "least_cpu_ms")
        if value is not None and best is not None and value > SLOWER:
            more = Counter(row["ours"]["operators"])
            more.subtract(row[best[0]]["operators"])
            differing = ", ".join(f"{name} {count:+d}" for name, count in more.most_common() if count)
            lines.append(f"- {row['name']}, {value:.2f} of {best[0]}'s: {differing or 'the same operators'}")
    return "\n\nSlower, and the operators that ours has more or fewer of:\n\n" + "\n".join(lines) if lines else ""
