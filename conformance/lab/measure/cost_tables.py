"""What exports, checks and sessions cost, as Markdown."""

from __future__ import annotations

from typing import Any

from conformance.lab.measure.sessions import stages
from conformance.lab.pages.tables import figures_table as table


def growth_table(curves: dict[str, dict[Any, dict[str, float]]]) -> str:
    """Return a table per curve: CPU time, and time per piece, which is constant where the curve is a line."""
    parts = []
    for what, points in curves.items():
        rows = []
        for count, seconds in points.items():
            ours, floor = seconds["ours"], seconds["floor"]
            each = [f"{1e3 * one / int(count):.2f}" for one in (ours, floor)]
            rows.append([str(count), f"{ours:.2f}", each[0], f"{floor:.2f}", each[1], f"{ours / floor:.2f} x"])
        head = [what, "ours, s", "ours each, ms", "torch.export, s", "each, ms", "ours / floor"]
        parts.append(table(head, rows))
    return "\n\n".join(parts)


def memory_table(forms: dict[str, dict[str, Any]]) -> str:
    rows = []
    for form, figures in forms.items():
        weights, peak = figures["weights_bytes"], figures["peak_beyond_bytes"]
        plain, ours = (weights / figures[name] / 1e9 for name in ("plain_s", "write_s"))
        rows.append(
            [form, f"{weights / 1e9:.2f}", f"{peak / 1e6:.0f}", f"{peak / weights:.3f} x",
             f"{plain:.2f}", f"{ours:.2f}", f"{100 * ours / plain:.0f} %"]
        )  # fmt: skip
    head = [
        "form",
        "weights, GB",
        "peak beyond, MB",
        "of the weights",
        "plain write, GB/s",
        "ours, GB/s",
        "ours / plain",
    ]
    return table(head, rows)


def checks_table(checks: dict[str, Any]) -> str:
    rows = []
    for name, rate in checks["rates"].items():
        each = checks["versions"][name]
        rows.append(
            [name, f"{rate['wall_per_s']:.0f}", f"{rate['cpu_per_s']:.0f}", f"{rate['ours_ms']:.1f}",
             f"{rate['engine_ms']:.1f}", f"{each['one_ms']:.0f}", f"{each['five_ms']:.0f}", f"{each['further_ms']:.0f}"]
        )  # fmt: skip
    head = ["net", "checks/s", "per CPU second", "ours, ms", "engine's processes, ms"]
    head += ["new case, 1 version, ms", "5 versions, ms", "each further, ms"]
    return table(head, rows)


def session_table(sessions: list[dict[str, float]]) -> str:
    """What a cell costs is counted from the row above, since a session starts engines and loads torch at any size."""
    rows = []
    for before, one in zip([None, *sessions[:-1]], sessions, strict=True):
        each = ["", "", "", ""]
        if before is not None:
            kinds = ("cpu_s", "controller_cpu_s", "controller_mb")
            each = [f"{1e3 * _added_cost(before, one, kind, f'plain_{kind}'):.2f}" for kind in kinds]
            each.insert(1, f"{1e3 * _added_cost(before, one, 'cpu_s', 'bare_cpu_s'):.2f}")
        rows.append(
            [f"{one['cells']:.0f}", f"{one['cpu_s']:.1f}", f"{one['plain_cpu_s']:.1f}", f"{one['bare_cpu_s']:.1f}",
             *each[:3], f"{one['controller_mb']:.0f}", f"{one['plain_controller_mb']:.0f}", each[3]]
        )  # fmt: skip
    head = ["cells", "session, s", "plain tests with PyTorch, s", "without, s", "ours per cell, ms"]
    head += ["beyond those without PyTorch, ms", "controller per cell, ms"]
    return table([*head, "controller, MB", "with plain tests, MB", "ours per cell, kB"], rows)


def quick_table(ratios: list[dict[str, Any]]) -> str:
    """Return the seconds of both processes, and their ratio beside the largest that is meant to be."""
    rows = [
        [one["what"], f"{one['ours_s']:.3g}", f"{one['floor_s']:.3g}", f"{one['ours_s'] / one['floor_s']:.2f} x",
         f"{one['most']:.2f} x"]
        for one in ratios
    ]  # fmt: skip
    return table(["process", "s", "against, s", "ratio", "at most"], rows)


def _added_cost(before: dict[str, float], one: dict[str, float], kind: str, floor: str) -> float:
    """Per cell, beyond what as many plain tests add."""
    ours, plain = (one[name] - before[name] for name in (kind, floor))
    return (ours - plain) / (one["cells"] - before["cells"])


def markdown(results: dict[str, Any]) -> list[str]:
    """Return the sections of what was measured."""
    parts = []
    if "growth" in results:
        how = "CPU time in one process, in turns; `each` is per node, weight or axis."
        parts += ["## Growth of the time of an export", how, growth_table(results["growth"])]
    if "memory" in results:
        how = (
            "Peak of a fresh process beyond what it held when the model was made; writing by wall time, "
            "in turns with the same bytes written plainly to one file, the fastest of each."
        )
        parts += ["## Large weights", how, memory_table(results["memory"])]
    if "checks" in results:
        how = (
            "All processes on one core. A check is load, optimise and run in a process of its own, and the comparison, "
            "by tract 0.23.9; a new case is capture, reference, and for each version lowering, writing and the check."
        )
        parts += ["## Checks of small nets", how, checks_table(results["checks"])]
    if "session" in results:
        how = (
            "Whole sessions of a generated suite on five versions, with a report. Export and engine give what they "
            "gave the first time, so that what is left is our work and that of pytest; plain tests are as many that "
            "do nothing, without the plugin. Controller: the process that keeps the book, with `-n 2`."
        )
        parts += ["## Sessions", how, session_table(results["session"])]
    if "quick" in results:
        parts += ["## Quick sessions", "Whole processes in turns, CPU seconds, medians.", quick_table(results["quick"])]
        how = "Sampled every 2 ms of CPU time in a session of 200 small nets on one engine."
        parts += ["## Stages of a session", how, stages.table(results["stages"])]
    return parts
