"""Results as Markdown: `python -m conformance.lab.measure.tables results.json`."""

from __future__ import annotations

import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

from conformance.lab.measure import cost_tables, decoding
from conformance.lab.measure.startup import ADDED
from conformance.lab.pages.tables import figures_table as table
from conformance.lab.timing import ratio

Results = dict[str, Any]

_HOW = (
    "CPU time of one run on one pinned core, median. The archives of one net run in turns in one process, and their "
    "outputs are compared with PyTorch's first; a ratio is the median over the turns. `dynamic` is exported for any "
    "number of steps, by all."
)


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


def export_table(export: dict[str, dict[str, Any]]) -> str:
    """Return the median seconds of an export of n × (Linear + ReLU)."""
    ours = {int(n): float(s) for n, s in export["ours"].items()}
    floor = {int(n): float(s) for n, s in export["torch.export"].items()}
    peer = {int(n): s for n, s in export.get("peer", {}).items()}
    rows = []
    for n in sorted(ours):
        other = peer.get(n, "not run")
        has_time = isinstance(other, float)
        rows.append(
            [
                str(n),
                f"{ours[n]:.2f}",
                f"{1e3 * ours[n] / n:.1f}",
                f"{floor[n]:.2f}",
                f"{ours[n] / floor[n]:.2f} x",
                f"{other:.2f}" if has_time else str(other),
                f"{other / ours[n]:.0f} x" if has_time else "",
            ]
        )
    head = ["n", "ours, s", "ours per layer, ms", "torch.export, s", "ours / floor", "peer, s", "peer / ours"]
    text = table(head, rows)
    text += f"\n\nTime grows as n^{growth(ours):.2f} (ours), n^{growth(floor):.2f} (torch.export)"
    measured = {n: s for n, s in peer.items() if isinstance(s, float)}
    return text + (f", n^{growth(measured):.2f} (peer)." if len(measured) > 1 else ".")


def nets_table(nets: dict[str, dict[str, Any]]) -> str:
    """Return a table of median seconds of one export; the floor is torch.export alone."""
    rows = []
    for name, times in nets.items():
        ours, floor, peer = times["ours"], times["torch.export"], times.get("peer", "not run")
        has_time = isinstance(peer, float)
        shown = [f"{peer:.2f}", f"{peer / ours:.0f} x"] if has_time else [str(peer), ""]
        rows.append([name, f"{ours:.2f}", f"{floor:.2f}", f"{ours / floor:.2f} x", *shown])
    return table(["net", "ours, s", "torch.export, s", "ours / floor", "peer, s", "peer / ours"], rows)


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


def engine_table(entries: list[dict[str, Any]]) -> str:
    """Return a table of speeds for each engine."""
    parts = []
    others = [who for who in EXPORTERS if any(who in e for e in entries)]
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
    who = [w for w in ("ours", *EXPORTERS) if any(w in e for e in entries)]
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


def startup_table(startup: dict[str, dict[str, float]]) -> str:
    rows = [[name, f"{f['wall_s'] * 1e3:.0f}", f"{f['cpu_s'] * 1e3:.0f}"] for name, f in startup.items()]
    added = [
        f"- {what}: {(startup[more]['cpu_s'] - startup[less]['cpu_s']) * 1e3:.0f} ms"
        for what, (more, less) in ADDED.items()
    ]
    return "\n".join([table(["process", "wall, ms", "CPU, ms"], rows), "", "Added CPU time:", "", *added])


def markdown(results: Results) -> str:
    parts = ["# Benchmarks", machine_line(results["machine"])]
    if results.get("peer"):
        parts.append(f"The peer is {results['peer']}, in a separate environment, with the same torch.")
    if "export" in results:
        parts += ["## Export of n times (Linear + ReLU)", export_table(results["export"])]
        parts += ["## Export of whole nets", nets_table(results["export"]["nets"])]
        if results.get("peer_note"):
            parts.append(results["peer_note"])
    if "engine" in results:
        parts += [
            "## Recurrent nets in the engine",
            "100 steps, batch 1 unless the name says another, input as wide as the net. " + _HOW,
            ratio_table(results["engine"]),
            engine_table(results["engine"]),
            "## The same archives' size",
            size_table(results["engine"]),
        ]
    if "layers" in results:
        layers = results["layers"]
        others = [who for who in EXPORTERS if any(who in e for e in layers)]
        parts += ["## Other nets in the engine", _HOW, *(ratio_table(layers, who) for who in (*others, "torch"))]
        parts += [engine_table(layers), "### The same archives' size", size_table(layers)]
    if "decoding" in results:
        parts += ["## A language model, token by token", decoding.HOW, *decoding.tables(results["decoding"])]
    parts += cost_tables.markdown(results)
    if "startup" in results:
        parts += ["## Start of a process", startup_table(results["startup"])]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    print(markdown(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
