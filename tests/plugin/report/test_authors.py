"""The authors of mismatches, counted in badges, on the page and in the summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_t2n.records.counts import CellCounts, authors_text
from pytest_t2n.records.file import encode
from pytest_t2n.records.outline import outline_of
from pytest_t2n.records.schema import SCHEMA, CellLine
from pytest_t2n.report.exports import matrix_csv
from pytest_t2n.report.matrix import Matrix
from pytest_t2n.report.write import write_report
from tests.plugin.report.many_records import whole
from tests.releases import RECENT

AUTHORS = ("engine", "both", "engine", "exporter", "")


def cell(case: str, author: Any = "", label: str = RECENT, status: str = "mismatch") -> CellLine:
    facts = {"author": author, "more": 1} if author else {}
    fields: Any = (status, "compare", None, "close")
    return CellLine(SCHEMA, f"{case}[tract-{label}]", case, "tract", label, label, *fields, facts=facts)


@pytest.fixture
def records() -> Any:
    passed = [cell("p.py::test_p", label=label, status="pass") for label in ("0.21.19", RECENT)]
    return whole([*(cell(f"a.py::test_{n}", author) for n, author in enumerate(AUTHORS)), *passed])


@pytest.mark.parametrize(
    ("authors", "text"),
    [
        ([], ""),
        ([""], ""),
        (["engine"], "0 exporter errors, 1 engine error"),
        (["exporter", "engine", "engine"], "1 exporter error, 2 engine errors"),
        (["both", ""], "0 exporter errors, 0 engine errors, 1 of both"),
        ([{"of": "somebody"}, "the butler"], ""),
    ],
)
def test_the_counts_of_a_session(authors: list[Any], text: str) -> None:
    counts = CellCounts()
    for number, author in enumerate(authors):
        counts.add(cell(f"a.py::test_{number}", author))
    assert authors_text(counts.authors) == text


def test_an_outline_keeps_the_author_alone() -> None:
    assert outline_of(cell("a.py::test_a", "both")).author == "both"
    assert outline_of(cell("a.py::test_a", "both")).facts == {"author": "both"}
    assert outline_of(cell("a.py::test_a")).facts == {}


def test_badges_and_pages_count_the_authors(records: Any, tmp_path: Path) -> None:
    write_report(records, tmp_path)
    badges = {name: json.loads((tmp_path / f"badge-tract-{name}.json").read_text()) for name in ("0.21.19", RECENT)}
    text = "1 exporter error, 2 engine errors, 1 of both"
    assert badges[RECENT]["message"] == f"1/6 pass, {text}"
    assert badges["0.21.19"]["message"] == "1/1 pass"
    assert text in (tmp_path / "index.html").read_text()
    assert f"By the definitions of the operators: {text}" in (tmp_path / "summary.md").read_text()


def test_the_counts_come_from_a_file_as_well(records: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pytest_t2n.cli import main

    (tmp_path / "matrix.jsonl").write_text("".join(f"{encode(record)}\n" for record in records))
    assert main(["matrix", "badge", str(tmp_path), "-o", str(tmp_path / "badges")]) == 0
    capsys.readouterr()
    badge = json.loads((tmp_path / "badges" / f"badge-tract-{RECENT}.json").read_text())
    assert badge["message"] == "1/6 pass, 1 exporter error, 2 engine errors, 1 of both"


def test_reports_of_passes_name_nobody(tmp_path: Path) -> None:
    write_report(whole([cell("p.py::test_p", status="pass")]), tmp_path)
    assert "error" not in (tmp_path / f"badge-tract-{RECENT}.json").read_text()
    assert "definitions" not in (tmp_path / "summary.md").read_text()


def test_the_csv_has_the_author(records: Any) -> None:
    head, *lines = [line.split(",") for line in matrix_csv(Matrix.of(records)).splitlines()]
    authors = {line[head.index("case")]: line[head.index("author")] for line in lines}
    assert [authors[f"a.py::test_{n}"] for n in range(len(AUTHORS))] == list(AUTHORS)
