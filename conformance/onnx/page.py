"""The pages of the site with the verdicts: the scoreboard, and each case under its operator."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from conformance.dialect.findings import ranges_text
from conformance.dialect.page import cell_text
from conformance.lab.pages.render import render
from conformance.onnx.architectures import table as architectures
from conformance.onnx.architectures.page import page as architectures_page
from conformance.onnx.known import CAUSES, Cause
from conformance.onnx.table import STATUSES, Row, Table, read, spans, totals

INDEX, CASES, ARCHITECTURES = "index", "cases", "architectures"


def pages() -> dict[str, str]:
    """Return the text of each page by its name."""
    table = read()
    operators = [(name, list(of)) for name, of in groupby(table.rows, lambda row: row.operator)]
    minors = {minor: list(of) for minor, of in groupby(table.releases, lambda release: release.rpartition(".")[0])}
    shown = {"table": table, "statuses": STATUSES, "operators": operators}
    functions = (totals, spans, of_opset, line_cells, anchor, in_words)
    refusals = Counter(row.refusal for row in table.rows if row.refusal).most_common()
    index = {"minors": minors, "wrong": list(_wrong(table)), "rounding": list(_rounding(table))}
    return {
        INDEX: render("onnx", functions, **shown, **index, refusals=refusals),
        CASES: render("onnx_cases", functions, **shown),
        ARCHITECTURES: architectures_page(architectures.read()),
    }


def of_opset(rows: Iterable[Row]) -> list[tuple[int, list[Row]]]:
    """Return the cases of an operator by its opsets."""
    return [(opset, list(of)) for opset, of in groupby(rows, lambda row: row.opset)]


def line_cells(rows: Sequence[Row], lines: Iterable[Sequence[str]]) -> list[str]:
    """Return for each minor line how many cases have each status; the number alone if all are right."""
    return [cell_text({release: totals(rows, release) for release in line}, line, STATUSES) for line in lines]


def anchor(operator: str) -> str:
    """Return the anchor that the site gives to the heading of an operator."""
    return "".join(
        character for character in operator.lower().replace(" ", "-") if character.isalnum() or character in "-_"
    )


def in_words(ranges: str, releases: Sequence[str]) -> str:
    """Return ranges of releases as a page has them."""
    return (
        "every release"
        if ranges == ranges_text(releases, releases)
        else ranges.replace("..", " to ").replace(",", ", ")
    )


def releases_with(row: Row, status: str) -> str:
    """Return the ranges of releases in which a case has a status."""
    order = list(row.statuses)
    return ranges_text((release for release in order if row.statuses[release] == status), order)


def _wrong(table: Table) -> Iterator[tuple[Cause, str, Sequence[Row]]]:
    """Yield each cause, the releases, and its cases; one for each group of cases that is wrong in the same releases."""
    for cause in CAUSES:
        groups: dict[str, list[Row]] = defaultdict(list)
        for row in table.rows:
            if cause.explains(row.case) and (releases := releases_with(row, "wrong")):
                groups[releases].append(row)
        for releases, rows in groups.items():
            yield cause, releases, rows


def _rounding(table: Table) -> Iterator[tuple[Row, str]]:
    """Yield each case that is only rounded otherwise, with the releases."""
    return ((row, text) for row in table.rows if (text := releases_with(row, "rounding")))
