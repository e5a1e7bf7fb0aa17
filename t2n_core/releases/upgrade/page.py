"""The page of an upgrade, in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Final

from t2n_core.engine.causes import deepest_first
from t2n_core.parity.outcomes import unique_sizes
from t2n_core.parity.samples import Sample
from t2n_core.parity.table import sizes_text
from t2n_core.profiling.profile import comparison_table
from t2n_core.releases.boundaries import RIGHT
from t2n_core.releases.upgrade.report import UpgradeReport
from t2n_core.releases.upgrade.values import PathChange

_MOST_LINES: Final = 20
_MOST_CHARACTERS: Final = 240


def page(report: UpgradeReport) -> str:
    """Return the page: the verdict, then values, errata, operators and times."""
    lines = [f"# {report.headline}", "", "## Values", ""]
    for change in report.paths:
        lines += _path_lines(change, report)
    lines += _errata_lines(report)
    lines += _operator_lines(report)
    lines += _time_lines(report)
    lines += _again_lines(report)
    return "\n".join(lines).rstrip("\n") + "\n"


def _path_lines(change: PathChange, report: UpgradeReport) -> Iterator[str]:
    note = "" if change.required else ", on which not every graph runs in these releases, and which does not count"
    yield f"On the path {change.name}{note}:"
    yield ""
    for side in (change.old, change.new):
        if side.failure is not None:
            yield f"- tract {side.version} does not load it: {_short(deepest_first(side.failure.message))}"
    for release, samples in ((change.new.version, change.refused), (change.old.version, change.taken)):
        for why in dict.fromkeys(samples.values()):
            alike = [sample for sample, reason in samples.items() if reason == why]
            yield f"- only tract {release} does not run it{_at(alike)}: {_short(deepest_first(why))}"
    if change.compared is not None:
        yield from _compared_lines(change, report)
    for boundary in report.since.get(change.name, ()):
        yield f"- changed between {boundary.describe()}"
    yield ""


def _compared_lines(change: PathChange, report: UpgradeReport) -> Iterator[str]:
    compared = change.compared
    assert compared is not None
    both = [sample for sample in change.old.outputs if sample in change.new.outputs]
    for output in compared.outputs:
        level = "no level" if output.level is None else f"level `{output.level.value}`"
        summary = f"both releases agree at {level}, by {output.max_abs:.3g} at most"
        if not output.passed:
            reason = output.problem or f"by up to {output.max_abs:.3g}, {level} holds"
            summary = f"differs{_at(change.differing)}: {reason}"
        yield f"- `{output.name}`{_at(both) if output.passed else ''}: {summary}"
    if compared.passed:
        return
    old, new = change.judged
    if not old and not new:
        yield "- which of them is right is not known: nothing states the expected outputs"
    for side, ending in ((change.old, old), (change.new, new)):
        if ending:
            yield f"- by {report.reference} tract {side.version} is {_ending(ending)}"
    if (old, new) == (RIGHT, RIGHT):
        yield "- both are right within rounding: this is no movement"


def _errata_lines(report: UpgradeReport) -> list[str]:
    errata = report.errata
    lines = ["## Errata that concern this graph", ""]
    if errata.unknown:
        lines += [f"They could not be looked up: {_short(errata.unknown)}", ""]
        return lines
    if not errata.mended and not errata.new:
        return []
    lines += [f"- mended by {report.after}: {erratum}" for erratum in errata.mended]
    lines += [f"- new in {report.after}: {erratum}" for erratum in errata.new]
    return [*lines, ""]


def _operator_lines(report: UpgradeReport) -> list[str]:
    operators = report.operators
    before, after = operators.nodes
    if not before or not after:
        return []
    lines = ["## Operators of the optimised graph", "", f"{before} nodes before, {after} after.", ""]
    if operators.counts:
        lines += [f"| operator | {report.before} | {report.after} |", "|---|---|---|"]
        lines += [f"| {name} | {count} | {other} |" for name, (count, other) in operators.counts.items()]
        lines.append("")
    return lines


def _time_lines(report: UpgradeReport) -> list[str]:
    costs = report.costs
    if costs is None:
        return []
    lines = [
        "## Times",
        "",
        f"| release | load, best of {_rounds(report)} | run, best | run, median |",
        "|---|---|---|---|",
    ]
    for release in costs.releases:
        load, run = costs.speed.loads[release], costs.speed.seconds[release]
        numbers = (min(load), min(run), statistics.median(run))
        lines.append(f"| {release} | {' | '.join(f'{seconds * 1e3:.3g} ms' for seconds in numbers)} |")
    ratios = costs.speed.ratios(*costs.releases)
    lines += ["", f"Ratio of runs in turns: {costs.ratio:.2f}, from {min(ratios):.2f} to {max(ratios):.2f}.", ""]
    if costs.profiles:
        before, after = costs.profiles
        ratio = after.cpu / before.cpu if before.cpu else 0.0
        lines += [f"Ratio of CPU times: {ratio:.2f}. {_memory(before.memory, after.memory)}".rstrip(), "", "```"]
        lines += [comparison_table(costs.profiles, _MOST_LINES), "```", ""]
    return lines


def _again_lines(report: UpgradeReport) -> list[str]:
    again = report.again
    if again is None:
        return []
    lines = [f"## Exported again for {report.after}", ""]
    if again.outcome.passed:
        level = "" if again.outcome.level is None else f" at level `{again.outcome.level.value}`"
        lines.append(f"- its outputs are those of this file in {report.before}{level}")
    else:
        lines.append(f"- its outputs are not those of this file in {report.before}: {_short(again.outcome.summary)}")
    if again.ratio is not None:
        lines.append(f"- it takes {again.ratio:.2f} times as long as this file does in {report.after}")
    return [*lines, ""]


def _memory(before: int, after: int) -> str:
    """Return what a loaded model and its runs take in both releases; empty if it is not known."""
    if not before or not after:
        return ""
    return f"Memory of the loaded model and its runs: {before / 2**20:.1f} MiB before, {after / 2**20:.1f} MiB after."


def _rounds(report: UpgradeReport) -> int:
    assert report.costs is not None
    return len(report.costs.speed.seconds[report.after])


def _at(samples: list[Sample]) -> str:
    """Return ` at T=3, T=5`; empty for samples without sizes."""
    sizes = unique_sizes(sample.sizes for sample in samples)
    return f" at {sizes_text(sizes)}" if any(sizes) else ""


def _ending(ending: str) -> str:
    return "right" if ending == RIGHT else f"wrong ({ending})"


def _short(text: str) -> str:
    first = " ".join(text.split())
    return first if len(first) <= _MOST_CHARACTERS else f"{first[:_MOST_CHARACTERS]}…"
