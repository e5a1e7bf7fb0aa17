"""The report's files from records alone: complete, escaped, deterministic, small."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html.parser import HTMLParser

import pytest

from pytest_t2n.records import (
    SCHEMA,
    CellLine,
    EngineLine,
    ErrorLine,
    OutputLine,
    RecordError,
    RunLine,
    encode,
    read_records,
)
from pytest_t2n.report import write_report

NASTY = "</script><img src=x onerror=alert(1)>|`{{ 7 * 7 }}`\u2028&amp;"


def run_line(*labels: str) -> RunLine:
    engines = [EngineLine("tract", label, label, requested=label[:4], sha256="ab" * 32) for label in labels]
    return RunLine(SCHEMA, "2026-01-02T03:04:05+00:00", engines, {"python": "3.11.7"}, "linux", arguments=[NASTY])


def cell(case: str, label: str, status: str = "pass", **more) -> CellLine:
    level = {"pass": "close"}.get(status)
    stage = "compare" if status in ("pass", "mismatch") else "run"
    return CellLine(
        SCHEMA, f"{case}[tract-{label}]", case, "tract", label, label, status, stage, level, "close", **more
    )


def payload(page: str) -> dict:
    (packed,) = re.findall(r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>', page)
    return json.loads(zlib.decompress(base64.b64decode(packed)))


@pytest.fixture
def records():
    bad = OutputLine("y", "float32", [2, 3], "mismatch", "close", max_abs="inf", worst_index=[0, 1], problem=NASTY)
    return [
        run_line("0.21.19", "0.23.9"),
        cell("b.py::test_b", "0.21.19"),
        cell("b.py::test_b", "0.23.9", "mismatch", outputs=[bad], error=ErrorLine("ParityError", NASTY)),
        cell(NASTY, "0.21.19", "crash", error=ErrorLine("EngineCrash", f"panicked\n{NASTY}", hint="x")),
        cell(NASTY, "0.23.9", "skip"),
        cell("a.py::test_a", "0.23.9", "error", expected="xfail: known", error=ErrorLine("KeyError", "k")),
    ]


def test_files_and_their_names(records, tmp_path):
    written = write_report(records, tmp_path / "site")
    names = ["index.html", "summary.md", "badge-tract-0.21.19.json", "badge-tract-0.23.9.json"]
    assert [path.name for path in written] == names
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == sorted(names)


def test_the_page_holds_every_cell_with_its_evidence(records, tmp_path):
    write_report(records, tmp_path)
    data = payload((tmp_path / "index.html").read_text())
    assert data["columns"] == ["tract 0.21.19", "tract 0.23.9"]
    assert [row["case"] for row in data["rows"]] == sorted([NASTY, "a.py::test_a", "b.py::test_b"])
    by_case = {row["case"]: row for row in data["rows"]}
    assert by_case["a.py::test_a"]["cells"][0] is None
    assert by_case["a.py::test_a"]["cells"][1]["expected"] == "xfail: known"
    mismatch = by_case["b.py::test_b"]["cells"][1]
    assert mismatch["outputs"][0]["problem"] == mismatch["error"]["message"] == NASTY
    assert (by_case["b.py::test_b"]["differs"], by_case["a.py::test_a"]["differs"]) == (True, False)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_nothing_of_a_record_becomes_markup(records, tmp_path):
    write_report(records, tmp_path)
    page = (tmp_path / "index.html").read_text()
    tags = Tags()
    tags.feed(page)
    assert not [attrs for tag, attrs in tags.found if tag == "img" or any(name.startswith("on") for name in attrs)]
    assert len([tag for tag, _ in tags.found if tag == "script"]) == 2
    assert "&lt;/script&gt;" in page
    assert "{{" in page, "a template inside of a record is text"
    summary = (tmp_path / "summary.md").read_text()
    assert "<" not in summary
    assert all(line.count("|") - line.count("\\|") == 6 for line in summary.splitlines() if "onerror" in line)


def test_no_request_leaves_the_page(records, tmp_path):
    write_report(records, tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert "default-src 'none'" in page
    assert not re.findall(r"""(?:src|href)=["'](?!data:,)""", page)
    assert not re.findall(r"https?://", page)


def test_the_policy_allows_the_very_script_and_style(records, tmp_path):
    import hashlib

    write_report(records, tmp_path)
    page = (tmp_path / "index.html").read_bytes().decode()
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in page or f"{tag}-src 'sha256-{digest}'" in page


def test_the_same_records_give_the_same_bytes(records, tmp_path):
    write_report(records, tmp_path / "one")
    write_report([records[0], *reversed(records[1:])], tmp_path / "two")
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_summary(records, tmp_path):
    write_report(records, tmp_path)
    summary = (tmp_path / "summary.md").read_text()
    assert "3 cases on 2 engine versions, 5 cells" in summary
    assert "| engine | pass | mismatch | error | crash | skip |" in summary
    assert "| tract 0.21.19 | 1 |  |  | 1 |  |" in summary
    assert "a.py" not in summary, "what is expected is nothing to look at"


def test_a_summary_is_capped(tmp_path):
    write_report([cell(f"case_{n}", "0.23.9", "crash") for n in range(300)], tmp_path)
    lines = (tmp_path / "summary.md").read_text().splitlines()
    assert len(lines) <= 60
    assert lines[-1] == "… and 260 more; see `index.html`"


@pytest.mark.parametrize(
    ("statuses", "message", "colour"),
    [
        (["pass", "pass", "skip"], "2/2 pass", "brightgreen"),
        (["pass", "pass", "crash"], "2/3 pass", "yellow"),
        (["pass", "crash", "oom"], "1/3 pass", "red"),
        (["pass", "not_run"], "incomplete, 1/2 pass", "lightgrey"),
        (["skip"], "no cases", "lightgrey"),
    ],
)
def test_badges(tmp_path, statuses, message, colour):
    write_report([cell(f"case_{n}", "0.23.9", status) for n, status in enumerate(statuses)], tmp_path)
    badge = json.loads((tmp_path / "badge-tract-0.23.9.json").read_text())
    assert (badge["label"], badge["message"], badge["color"]) == ("tract 0.23.9", message, colour)


def test_a_badge_of_a_strange_label_stays_in_the_directory(tmp_path):
    write_report([cell("a", "../../x y")], tmp_path / "site")
    assert [path.name for path in (tmp_path / "site").glob("badge-*")] == ["badge-tract-.._.._x_y.json"]


def test_an_empty_matrix(tmp_path):
    write_report([], tmp_path)
    assert payload((tmp_path / "index.html").read_text())["rows"] == []


def test_twenty_thousand_cells_are_a_small_file(tmp_path):
    labels = ["0.20.22", "0.21.19", "0.22.4", "0.23.9"]
    outputs = [
        OutputLine("y", "float32", [2, 30], "pass", "close", "close", max_abs=1.25e-8, max_ulp=3, worst_index=[1, 7])
    ]
    cells = [cell(f"suite.py::test_{n}", label, outputs=outputs) for n in range(5000) for label in labels]
    write_report([run_line(*labels), *cells], tmp_path)
    assert (tmp_path / "index.html").stat().st_size < 5_000_000


def test_records_are_read_back_and_damage_is_named(records, tmp_path):
    path = tmp_path / "matrix.jsonl"
    text = "".join(encode(record) + "\n" for record in records)
    path.write_text(text + '{"type":"cell","sch')
    assert read_records(path) == records, "a line that was cut off is left out"
    path.write_text(text + "nonsense\n")
    with pytest.raises(RecordError, match=r"matrix\.jsonl:7: "):
        read_records(path)
    path.write_text(encode(records[0]).replace('"schema":1', '"schema":99') + "\n")
    with pytest.raises(RecordError, match="schema 99"):
        read_records(path)
