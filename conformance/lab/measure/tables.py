"""Results as Markdown: `python -m conformance.lab.measure.tables results.json`."""

from __future__ import annotations

import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

from conformance.lab.measure import decoding
from conformance.lab.measure.startup import ADDED
from conformance.lab.pages.render import render
from conformance.lab.pages.tables import figures_table as table
from conformance.lab.timing import ratio

Results = dict[str, Any]


def growth(times: dict[int, float]) -> float:
    """Return the exponent k of time ~ n^k, by least squares over the logarithms."""
    xs, ys = [math.log(n) for n in times], [math.log(t) for t in times.values()]
    mean_x, mean_y = statistics.fmean(xs), statistics.fmean(ys)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sum((x - mean_x) ** 2 for x in xs)


def machine_line(machine: dict[str, Any]) -> str:
    return (
        f"{machine['date']}; {machine['cpu']}, {machine['cores']} cores, {machine['system']}; "
        f"Python {machine['python']}, torch {machine['torch']}, numpy {machine['numpy']}; "
        f"load when it started {machine['load']}."
    )


def seconds(time: float | str) -> str:
    """Return seconds as text, or why there are none."""
    return f"{time:.2f}" if isinstance(time, float) else time


def multiple(time: float | str, ours: float) -> str:
    """Return a time as a multiple of ours; an empty text if there is none."""
    return f"{time / ours:.0f} x" if isinstance(time, float) else ""


def by_length(times: dict[Any, Any]) -> dict[int, Any]:
    """Return times by the number of layers, which JSON has as a text."""
    return {int(n): time for n, time in times.items()}


def numbers(times: dict[int, Any]) -> dict[int, float]:
    """Return the times that were measured."""
    return {n: time for n, time in times.items() if isinstance(time, float)}


def added(before: dict[str, float] | None, now: dict[str, float], kind: str, floor: str) -> str:
    """Return what each further cell adds beyond what as many plain tests add, in thousandths.

    It is counted from the row above, since a session starts engines and loads torch at any size.
    """
    if before is None:
        return ""
    ours, plain = (now[name] - before[name] for name in (kind, floor))
    return f"{1e3 * (ours - plain) / (now['cells'] - before['cells']):.2f}"


def _ms(figures: dict[str, Any] | None) -> str:
    if not figures:
        return "-"
    return f"{figures['cpu_ms']:.2f}" if "cpu_ms" in figures else "fails"


def _times(slow: dict[str, Any] | None, fast: dict[str, Any]) -> str:
    if not slow or "cpu_ms" not in slow or "cpu_ms" not in fast:
        return ""
    if "turns_ms" in slow and "turns_ms" in fast:  # run in turns, so other load hits both alike
        return f"{ratio(slow['turns_ms'], fast['turns_ms']):.2f} x"
    return f"{slow['cpu_ms'] / fast['cpu_ms']:.2f} x"


EXPORTERS = {"peer": "torch-to-nnef", "onnx": "torch.onnx"}
"""Key in the results -> name in the tables."""


def exporters_of(entries: list[dict[str, Any]]) -> list[str]:
    """Return the keys of the other exporters that were measured."""
    return [who for who in EXPORTERS if any(who in e for e in entries)]


def engine_table(entries: list[dict[str, Any]]) -> str:
    """Return a table of speeds for each engine."""
    parts = []
    others = exporters_of(entries)
    for engine in dict.fromkeys(e["engine"] for e in entries):
        rows = []
        for e in (e for e in entries if e["engine"] == engine):
            ours = e.get("ours", {})
            shown = [text for who in others for text in (_ms(e.get(who)), _times(e.get(who), ours))]
            rows.append([e["net"], _ms(ours), *shown, _ms(e["torch"]), _times(e["torch"], ours)])
        heads = [text for who in others for text in (f"{EXPORTERS[who]}, ms", f"{EXPORTERS[who]} / ours")]
        head = ["net", "ours, ms", *heads, "PyTorch, ms", "PyTorch / ours"]
        parts.append(f"**tract {engine}**\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def ratio_table(entries: list[dict[str, Any]], who: str = "peer") -> str:
    """Return a table of another exporter's time over ours, one column per engine; above 1 ours is faster."""
    engines = list(dict.fromkeys(e["engine"] for e in entries))
    cells = {(e["net"], e["engine"]): _times(e.get(who), e.get("ours", {})) or _why(e.get(who)) for e in entries}
    nets = list(dict.fromkeys(e["net"] for e in entries))
    head = [f"{EXPORTERS.get(who, 'PyTorch')} / ours", *engines]
    return table(head, [[net, *(cells.get((net, v), "") for v in engines)] for net in nets])


def _why(figures: dict[str, Any] | None) -> str:
    """Return why there is no time, in one word."""
    if not figures:
        return "-"
    return "wrong" if str(figures.get("error")).startswith("wrong") else "fails"


def size_table(entries: list[dict[str, Any]]) -> str:
    """Return the sizes of archives in the newest engine of the run; its optimised graph gives the operators."""
    who = [*(["ours"] if any("ours" in e for e in entries) else []), *exporters_of(entries)]
    rows = []
    for e in entries:
        if e["engine"] == entries[-1]["engine"]:
            figures = [e.get(name, {}) for name in who]
            sizes = [f"{f['bytes'] / 1024:.0f}" if "bytes" in f else "-" for f in figures]
            counts = [str(sum(f["operators"].values())) if "operators" in f else "-" for f in figures]
            rows.append([e["net"], *sizes, *(str(f.get("statements", "-")) for f in figures[:2]), *counts])
    names = [EXPORTERS.get(w, w) for w in who]
    head = ["net", *(f"{n}, KiB" for n in names), *(f"{n}, statements" for n in names[:2])]
    return table([*head, *(f"{n}, operators" for n in names)], rows)


def markdown(results: Results) -> str:
    """Return the page of all parts that were measured."""
    functions = (
        machine_line, by_length, seconds, multiple, growth, numbers, added,
        ratio_table, engine_table, size_table, exporters_of,
    )  # fmt: skip
    texts = {"decoding_how": decoding.HOW, "decoding_tables": decoding.tables, "startup_added": ADDED}
    return render("benchmarks", functions, results=results, **texts)


def main() -> None:
    print(markdown(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
