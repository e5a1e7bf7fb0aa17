"""The pages of the league: totals, suites, operators, architectures, times, and the errors that each figure counts."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from jinja2 import StrictUndefined, Template

from conformance.lab.machine import ROOT
from conformance.lab.pages.tables import figures_table, table
from conformance.league.results import OUTCOMES, RIGHT, WRONG, Result, Results, file_of, right_counts
from pytest_t2n.records.nodeids import OWN_EXPORTER
from t2n_core.parity.outcome import fingerprint
from t2n_core.parity.stage import Author

FOLDER: Final = ROOT / "docs" / "reference" / "league"
RESULTS: Final = Path("results")
"""The folder of the results, in that of the pages."""
_TEMPLATES: Final = Path(__file__).with_name("templates")
MARK: Final = "<!-- league: totals -->"
"""The mark before the totals in another page."""
_MOST_CAUSES: Final = 15


def write_pages(results: Results, exporters: Sequence[str], folder: Path = FOLDER) -> None:
    """Write all pages of the league."""
    newest = results.releases[-1]
    tables = {
        "totals": totals(results, exporters, newest),
        "releases": _by_release(results, exporters),
        "suites": _by_suite(results, exporters, newest),
        "authors": _authors(results, exporters, newest),
        "times": _times(results, exporters, newest),
        "onnxruntime": _onnxruntime(results, exporters, newest),
        "ahead": _ahead(results, exporters, newest),
        "run": _run(results, exporters),
        "operators": _cases(results, exporters, ["operators"]),
        "architectures": _cases(results, exporters, [suite for suite in results.suites if suite.startswith("models-")]),
        "causes": _causes(results, exporters),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for template in sorted(_TEMPLATES.glob("*.md")):
        text = Template(template.read_text("utf-8"), undefined=StrictUndefined, keep_trailing_newline=True)
        (folder / template.name).write_text(text.render(tables), "utf-8")


def totals(results: Results, exporters: Sequence[str], release: str, folder: str = "") -> str:
    """Return the outcomes of each exporter in a release; `folder` leads from the page of the table to the others."""
    rows = []
    for exporter in exporters:
        exporter_results = results.of(exporter, release)
        counts = Counter(result.outcome for result in exporter_results)
        right = [f"{count:,}" for count in right_counts(exporter_results)]
        link = f"({folder}causes.md#{exporter})"
        failures = [f"[{counts[name]:,}]{link}" if counts[name] else "0" for name in OUTCOMES[1:]]
        rows.append([f"`{exporter}`", f"{len(exporter_results):,}", *right, *failures])
    return figures_table(["exporter", "cases", "right", "right, strict", *OUTCOMES[1:]], rows)


def _by_release(results: Results, exporters: Sequence[str]) -> str:
    """Return the share of right cases of each exporter in each release."""
    rows = [[f"`{name}`", *(_shares(results.of(name, release)) for release in results.releases)] for name in exporters]
    return figures_table(["exporter", *(f"tract {release}" for release in results.releases)], rows)


def _by_suite(results: Results, exporters: Sequence[str], release: str) -> str:
    rows = []
    for suite in results.suites:
        columns = {exporter: results.of(exporter, release, suite) for exporter in exporters}
        figures = []
        for exporter, exporter_results in columns.items():
            right, strict = right_counts(exporter_results)
            figure = f"{right:,} / {strict:,}"
            figures.append(figure if right == len(exporter_results) else f"[{figure}](causes.md#{exporter}-{suite})")
        link = file_of(RESULTS, suite).as_posix()
        rows.append([f"[{suite}]({link})", f"{max(map(len, columns.values())):,}", *figures])
    return figures_table(["suite", "cases", *(f"`{name}`" for name in exporters)], rows)


def _shares(results: Sequence[Result]) -> str:
    """Return the shares of right cases by both profiles, in percent."""
    return " / ".join(f"{count / len(results):.1%}" for count in right_counts(results)) if results else "not run"


def _times(results: Results, exporters: Sequence[str], release: str) -> str:
    """Return the median of the ratios of times to those of this package, over the cases that are right for both."""
    baseline = {result.key: result for result in results.of(OWN_EXPORTER, release) if result.outcome == RIGHT}
    rows = []
    for exporter in exporters:
        right = [result for result in results.of(exporter, release) if result.outcome == RIGHT]
        pairs = [(result, baseline[result.key]) for result in right if result.key in baseline]
        export = _median_ratio((theirs.export_seconds, ours.export_seconds) for theirs, ours in pairs)
        load = _median_ratio((theirs.load_seconds, ours.load_seconds) for theirs, ours in pairs)
        run = _median_ratio(
            (theirs.run_seconds, ours.run_seconds) for theirs, ours in pairs if theirs.sizes == ours.sizes
        )
        rows.append([f"`{exporter}`", f"{len(pairs):,}", export, load, run])
    return figures_table(["exporter", "cases", "export", "load", "run"], rows)


def _authors(results: Results, exporters: Sequence[str], release: str) -> str:
    """Return how many of the cases with other values are wrong by their file, and how many by the engine."""
    rows = []
    for exporter in exporters:
        counts = Counter(result.author for result in results.of(exporter, release) if result.outcome == WRONG)
        by_file, by_engine = counts.pop(Author.EXPORTER, 0), counts.pop(Author.ENGINE, 0)
        rows.append([f"`{exporter}`", str(by_file), str(by_engine), str(counts.total())])
    return figures_table(["exporter", "the file", "the engine", "both, rounding or not known"], rows)


def _onnxruntime(results: Results, exporters: Sequence[str], release: str) -> str:
    """Return how many ONNX files are right in onnxruntime, and how many of these the release of tract has right."""
    rows = []
    for exporter in exporters:
        files = results.of(exporter, results.onnxruntime)
        if not files:
            continue
        right = {result.key for result in files if result.outcome == RIGHT}
        in_tract = {result.key for result in results.of(exporter, release) if result.outcome == RIGHT}
        rows.append([f"`{exporter}`", f"{len(files):,}", f"{len(right):,}", f"{len(right & in_tract):,}"])
    return figures_table(["exporter", "cases", "right in onnxruntime", f"of these, right in tract {release}"], rows)


def _median_ratio(seconds: Iterable[tuple[float, float]]) -> str:
    ratios = [theirs / ours for theirs, ours in seconds if theirs and ours]
    return f"{statistics.median(ratios):.2f}" if ratios else "no times"


def _ahead(results: Results, exporters: Sequence[str], release: str) -> str:
    """Return the cases that another exporter has right and this package has not."""
    failures = {result.key: result for result in results.of(OWN_EXPORTER, release) if result.outcome != RIGHT}
    better: dict[tuple[str, str], list[str]] = {}
    for exporter in exporters:
        for result in results.of(exporter, release):
            if result.outcome == RIGHT and result.key in failures:
                better.setdefault(result.key, []).append(exporter)
    if not better:
        return "None."
    rows = [
        [suite, f"`{case}`", failures[suite, case].outcome, ", ".join(f"`{name}`" for name in names)]
        for (suite, case), names in sorted(better.items())
    ]
    return table(["suite", "case", "`t2n`", "right by"], rows)


def _run(results: Results, exporters: Sequence[str]) -> str:
    """Return when, where and with what it was run."""
    versions = {name: version for session in results.sessions for name, version in session.exporters.items()}
    peers = ", ".join(f"{name} {versions.get(name, '')}".strip() for name in exporters if name != OWN_EXPORTER)
    hours, minutes = divmod(round(sum(session.seconds for session in results.sessions) / 60), 60)
    days = sorted({session.date for session in results.sessions})
    date = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    platforms = " and on ".join(dict.fromkeys(session.platform for session in results.sessions))
    return f"{len(results.all):,} cells in {hours} h {minutes} min, {date}, on {platforms}; {peers}."


def _cases(results: Results, exporters: Sequence[str], suites: Sequence[str]) -> str:
    """Return a row for each case of these suites that not all exporters have right in all profiles."""
    release = results.releases[-1]
    by_case: dict[str, dict[str, Result]] = {}
    for suite, exporter in itertools.product(suites, exporters):
        for result in results.of(exporter, release, suite):
            by_case.setdefault(result.op or result.case, {})[exporter] = result
    if not by_case:
        return "This suite has not run."
    rows = [
        [f"`{name}`", *(_mark(by_exporter.get(exporter)) for exporter in exporters)]
        for name, by_exporter in sorted(by_case.items())
        if not all(result.is_strict for result in by_exporter.values())
    ]
    rest = len(by_case) - len(rows)
    right = f"{rest:,} of {len(by_case):,} are right for all exporters by both profiles"
    return f"{right}. The others, on tract {release}:\n\n" + table(["case", *(f"`{name}`" for name in exporters)], rows)


def _mark(result: Result | None) -> str:
    if result is None:
        return "not run"
    return result.outcome if result.outcome != RIGHT or result.is_strict else "right, not strict"


def _causes(results: Results, exporters: Sequence[str]) -> str:
    """Return the causes of failures by exporter and suite, with the number of cases in each engine."""
    parts = []
    for exporter in exporters:
        failed = [result for result in results.all if result.exporter == exporter and result.outcome != RIGHT]
        parts.append(f"## {exporter}\n" if failed else f"## {exporter}\n\nAll is right.\n")
        engines = {release: release for release in results.releases}
        if results.onnxruntime and results.of(exporter, results.onnxruntime):
            engines[results.onnxruntime] = f"onnxruntime {results.onnxruntime}"
        by_suite = {suite: [result for result in failed if result.suite == suite] for suite in results.suites}
        parts += [
            f"### {exporter} {suite}\n\n{_causes_of(failures, engines)}\n"
            for suite, failures in by_suite.items()
            if failures
        ]
    return "\n".join(parts).rstrip()


def _causes_of(failed: Sequence[Result], engines: Mapping[str, str]) -> str:
    """Return the table of causes; `engines` are versions with their titles."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in failed:
        groups.setdefault((result.outcome, fingerprint("", "", result.message)), []).append(result)
    ordered = sorted(groups.values(), key=lambda group: -len(group))
    rows = [[_cause(group[0]), f"`{group[0].case}`", *_counts(group, engines)] for group in ordered[:_MOST_CAUSES]]
    if rest := ordered[_MOST_CAUSES:]:
        rows.append(
            [f"{len(rest)} further causes", "", *_counts([result for group in rest for result in group], engines)]
        )
    return figures_table(["cause", "a case", *engines.values()], rows)


def _cause(result: Result) -> str:
    """Return the outcome with the message."""
    message = result.message.replace("`", "'").replace("\\", "/")
    return f"{result.outcome}: `{message}`" if message else result.outcome


def _counts(results: Sequence[Result], engines: Iterable[str]) -> list[str]:
    counts = Counter(result.release for result in results)
    return [str(counts[version]) for version in engines]
