"""The page of the documentation with the operators of the dialect in every release that was judged."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

from packaging.version import Version

from conformance.dialect.judge import STATUSES, Status, Verdict
from conformance.dialect.known import explanation
from conformance.dialect.session import smallest
from conformance.lab.pages.tables import table
from t2n_core.nnef.spec import spec_for

Counts = Counter[Status]
Cells = Mapping[tuple[str, str], Mapping[str, Counts]]
"""By operator and type, then by release: how many cases have each status."""

_HEAD: Final = """# Operators of the dialect

Which operators of tract's NNEF compute what their [definition](definitions/index.md) says, in float64,
in {releases} releases of tract. [The cases](../api/dialect.md#operators-and-cases) are drawn from fixed
seeds, with special values, and each is one statement. All {cases} verdicts come from one command.
They took {minutes} minutes of one process; a run that was interrupted goes on where it ended.

`tox -e dialect -- --tract all --jobs 2 --folder .tox/dialect/results --page docs/reference/dialect/operators.md`

Integers and booleans must be equal, NaN and infinities at the same places; other floats may differ by what the kernels
of the type round.

With `--tract latest --upstream cases` the command writes a case of each operator that tract computes wrongly, or dies
of, in the form of tract's own test cases, with the text of an issue.
"""


def dialect_page(found: Sequence[Verdict], seconds: float) -> str:
    """Return the page as Markdown, with all its tables."""
    releases = sorted({verdict.release for verdict in found}, key=Version)
    head = _HEAD.format(releases=len(releases), minutes=f"{seconds / 60:.0f}", cases=f"{len(found):,}")
    return "\n".join([head, _totals(found), _operators(found, releases), _findings(found)])


def dtype_of(verdict: Verdict) -> str:
    """Return the type of the first tensor of a case."""
    return next((str(array.dtype) for _, _, array in verdict.case.tensors()), "none")


def cells_of(found: Iterable[Verdict]) -> Cells:
    """Count the statuses of the cases of each operator, type and release."""
    cells: dict[tuple[str, str], dict[str, Counts]] = defaultdict(lambda: defaultdict(Counter))
    for verdict in found:
        cells[verdict.case.op, dtype_of(verdict)][verdict.release][verdict.status] += 1
    return cells


def cell_text(counts: Mapping[str, Counts], line: Sequence[str]) -> str:
    """Return the outcome of an operator in a minor line: the number of cases if all are right, else how many of each.

    Releases that do the same are one range. A range is named unless it is the whole line.
    """
    parts = []
    for entry, same in groupby(line, lambda release: _entry(counts.get(release, Counter()))):
        releases = list(same)
        if entry:
            parts.append(entry if len(releases) == len(line) else f"{_span(releases)}: {entry}")
    return "; ".join(parts)


def _entry(counts: Counts) -> str:
    if set(counts) == {"right"}:
        return str(counts["right"])
    return ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])


def _span(releases: Sequence[str]) -> str:
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def _lines(releases: Iterable[str]) -> dict[str, list[str]]:
    return {minor: list(of) for minor, of in groupby(releases, lambda release: release.rpartition(".")[0])}


def _totals(found: Sequence[Verdict]) -> str:
    counts: dict[str, Counts] = defaultdict(Counter)
    operators: dict[str, set[str]] = defaultdict(set)
    whole: dict[str, set[str]] = defaultdict(set)
    for verdict in found:
        release = verdict.release
        counts[release][verdict.status] += 1
        operators[release].add(verdict.case.op)
        if verdict.status != "right":
            whole[release].add(verdict.case.op)
    rows = []
    for release in sorted(counts, key=Version):
        ops = len(operators[release])
        figures = (ops, ops - len(whole[release]), counts[release].total(), *(counts[release][one] for one in STATUSES))
        rows.append([release, *map(str, figures)])
    head = ["tract", "operators", "all cases right", "cases", *STATUSES]
    return f"## Totals\n\n{table(head, rows)}\n"


def _operators(found: Sequence[Verdict], releases: Sequence[str]) -> str:
    lines = _lines(releases)
    rows = (
        [f"`{op}`", dtype, *(cell_text(counts, line) for line in lines.values())]
        for (op, dtype), counts in sorted(cells_of(found).items())
    )
    text = """## Operator, type and release

A number alone is that of the cases, which are all right; else it is how many were right, wrong, refused, crashed or
timed out. An empty cell has no operator or no such case. Releases of a line that differ are named.
"""
    return f"{text}\n{table(['operator', 'type', *lines], rows)}\n"


def _findings(found: Sequence[Verdict]) -> str:
    releases: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    operators: dict[str, set[str]] = defaultdict(set)
    for verdict in found:
        operators[verdict.case.op].add(verdict.release)
        if verdict.status != "right":
            releases[verdict.case.op, verdict.status, _reason(verdict)].add(verdict.release)
    examples: dict[tuple[str, str, str], Verdict] = {}
    for verdict in smallest(found):  # the newest release shows it
        examples[verdict.case.op, verdict.status, _reason(verdict)] = verdict
    rows = []
    for key, seen in sorted(releases.items()):
        op, status, reason = key
        order = sorted(operators[op], key=Version)
        spans = [_span(list(of)) for is_seen, of in groupby(order, seen.__contains__) if is_seen]
        where = "all that have it" if len(seen) == len(order) else ", ".join(spans)
        rows.append([f"`{op}`", status, where, reason, _example(examples[key])])
    text = """## What is not right

Each with the smallest case, in the newest release that does it.
"""
    return f"{text}\n{table(['operator', 'outcome', 'releases', 'what', 'example'], rows)}\n"


def _reason(verdict: Verdict) -> str:
    known = explanation(verdict)
    return known.reason if known else "not explained"


def _example(verdict: Verdict) -> str:
    statement = verdict.case.statement(spec_for("tract", verdict.release).operator(verdict.case.op))
    inputs = ", ".join(f"{label} {array.dtype}{list(array.shape)}" for _, label, array in verdict.case.tensors())
    return f"`{statement}`, {inputs}" if inputs else f"`{statement}`"
