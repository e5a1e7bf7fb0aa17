"""The page of the documentation with the operators of the dialect in every release that was judged."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from packaging.version import Version

from conformance.dialect.judge import STATUSES, Verdict
from conformance.dialect.known import explanation
from conformance.dialect.session import smallest
from conformance.lab.pages.render import render
from t2n_core.nnef.spec import spec_for

Counts = Counter[Any]
"""How many cases have each status."""
Cells = Mapping[tuple[str, str], Mapping[str, Counts]]
"""By operator and type, then by release: how many cases have each status."""


def dialect_page(verdicts: Sequence[Verdict], seconds: float) -> str:
    """Return the page as Markdown, with all its tables."""
    minors = {minor: list(of) for minor, of in groupby(_releases(verdicts), lambda release: release.rpartition(".")[0])}
    by_release: dict[str, list[Verdict]] = {release: [] for release in _releases(verdicts)}
    for verdict in verdicts:
        by_release[verdict.release].append(verdict)
    shown = {
        "releases": by_release,
        "minors": minors,
        "statuses": STATUSES,
        "cells": sorted(cells_of(verdicts).items()),
    }
    return render(
        "dialect", (totals, cell_text), cases=len(verdicts), seconds=seconds, findings=_findings(verdicts), **shown
    )


def _releases(verdicts: Iterable[Verdict]) -> list[str]:
    return sorted({verdict.release for verdict in verdicts}, key=Version)


def totals(verdicts: Sequence[Verdict]) -> list[int]:
    """Return the number of operators, of those whose cases are all right, of cases, and of each status."""
    counts = Counter(verdict.status for verdict in verdicts)
    operators = {verdict.case.op for verdict in verdicts}
    failing = {verdict.case.op for verdict in verdicts if verdict.status != "right"}
    return [len(operators), len(operators - failing), counts.total(), *(counts[status] for status in STATUSES)]


def dtype_of(verdict: Verdict) -> str:
    """Return the type of the first tensor of a case."""
    return next((str(array.dtype) for _, _, array in verdict.case.tensors()), "none")


def cells_of(verdicts: Iterable[Verdict]) -> Cells:
    """Count the statuses of the cases of each operator, type and release."""
    cells: dict[tuple[str, str], dict[str, Counts]] = defaultdict(lambda: defaultdict(Counter))
    for verdict in verdicts:
        cells[verdict.case.op, dtype_of(verdict)][verdict.release][verdict.status] += 1
    return cells


def cell_text(counts: Mapping[str, Counts], line: Sequence[str], statuses: Sequence[str] = STATUSES) -> str:
    """Return the outcome of an operator in a minor line: the number of cases if all are right, else how many of each.

    Releases that do the same are one range. A range is named unless it is the whole line.
    """
    parts = []
    for entry, same in groupby(line, lambda release: _entry(counts.get(release, Counter()), statuses)):
        releases = list(same)
        if entry:
            parts.append(entry if len(releases) == len(line) else f"{_span(releases)}: {entry}")
    return "; ".join(parts)


def _entry(counts: Counts, statuses: Sequence[str]) -> str:
    if set(counts) == {"right"}:
        return str(counts["right"])
    return ", ".join(f"{counts[status]} {status}" for status in statuses if counts[status])


def _span(releases: Sequence[str]) -> str:
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def _findings(verdicts: Sequence[Verdict]) -> Iterator[Sequence[str]]:
    """Yield the rows of what is not right, each with the smallest case."""
    releases: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    operators: dict[str, set[str]] = defaultdict(set)
    for verdict in verdicts:
        operators[verdict.case.op].add(verdict.release)
        if verdict.status != "right":
            releases[verdict.case.op, verdict.status, _reason(verdict)].add(verdict.release)
    examples: dict[tuple[str, str, str], Verdict] = {}
    for verdict in smallest(verdicts):  # the newest release shows it
        examples[verdict.case.op, verdict.status, _reason(verdict)] = verdict
    for key, seen in sorted(releases.items()):
        op, status, reason = key
        order = sorted(operators[op], key=Version)
        spans = [_span(list(of)) for is_seen, of in groupby(order, seen.__contains__) if is_seen]
        where = "all that have it" if len(seen) == len(order) else ", ".join(spans)
        yield op, status, where, reason, _example(examples[key])


def _reason(verdict: Verdict) -> str:
    cause = explanation(verdict)
    return cause.reason if cause else "not explained"


def _example(verdict: Verdict) -> str:
    statement = verdict.case.statement(spec_for("tract", verdict.release).operator(verdict.case.op))
    inputs = ", ".join(f"{label} {array.dtype}{list(array.shape)}" for _, label, array in verdict.case.tensors())
    return f"`{statement}`, {inputs}" if inputs else f"`{statement}`"
