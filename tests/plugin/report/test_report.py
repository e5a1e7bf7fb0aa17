"""The report's files from records alone: complete, escaped, deterministic, small."""

from __future__ import annotations

import base64
import json
import random
import re
import zlib
from html.parser import HTMLParser
from typing import Any

import pytest

from pytest_t2n.records.file import encode, read_records
from pytest_t2n.records.schema import (
    SCHEMA,
    CellLine,
    EngineLine,
    ErrorLine,
    GraphLine,
    OutputLine,
    RecordError,
    RunLine,
    cells_of,
)
from pytest_t2n.report.causes import find_causes
from pytest_t2n.report.columns import ColumnFold
from pytest_t2n.report.matrix import Matrix
from pytest_t2n.report.support import Share, support_ranges
from pytest_t2n.report.write import write_report
from tests.plugin.report.many_records import folded, many_records, whole
from tests.releases import RECENT

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


def payload(page: str, name: str = "data") -> Any:
    (packed,) = re.findall(rf'<script type="application/octet-stream" id="{name}">([A-Za-z0-9+/=]*)</script>', page)
    return json.loads(zlib.decompress(base64.b64decode(packed)))


@pytest.fixture
def records():
    bad = OutputLine("y", "float32", [2, 3], "mismatch", "close", max_abs="inf", worst_index=[0, 1], problem=NASTY)
    lines = [
        run_line("0.21.19", RECENT),
        cell("b.py::test_b", "0.21.19"),
        cell("b.py::test_b", RECENT, "mismatch", outputs=[bad], error=ErrorLine("ParityError", NASTY)),
        cell(NASTY, "0.21.19", "crash", error=ErrorLine("EngineCrash", f"panicked\n{NASTY}", hint="x")),
        cell(NASTY, RECENT, "skip"),
        cell("a.py::test_a", RECENT, "error", expected="xfail: known", error=ErrorLine("KeyError", "k")),
    ]
    return whole(lines)


def test_files_and_their_names(records, tmp_path):
    written = write_report(records, tmp_path / "site")
    names = ["index.html", "summary.md", "badge-tract-0.21.19.json", f"badge-tract-{RECENT}.json"]
    assert [path.name for path in written] == names
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == sorted(names)


def test_the_page_holds_every_cell_with_its_evidence(records, tmp_path):
    write_report(records, tmp_path)
    page = (tmp_path / "index.html").read_text()
    data, evidence = payload(page), payload(page, "evidence-0")
    assert [column["title"] for column in data["columns"]] == ["tract 0.21.19", f"tract {RECENT}"]
    assert [column["select"] for column in data["columns"]] == ["--t2n-tract=0.21.19", f"--t2n-tract={RECENT}"]
    rows = {row[-1]: row for row in data["rows"]}
    assert list(rows) == sorted([NASTY, "a.py::test_a", "b.py::test_b"])
    index, outcomes = 0, {}
    for case, row in rows.items():
        for column in range(2):
            code, cause = row[6][2 * column : 2 * column + 2]
            if code >= 0:
                words = data["statuses"][code & 15], data["stages"][code >> 4 & 15]
                outcomes[case, column] = (*words, code >> 12, data["causes"][cause - 1]["title"] if cause else "")
                assert evidence[index]["nodeid"].startswith(case)
                index += 1
    assert index == len(evidence) == 5
    nasty = NASTY.splitlines()
    assert outcomes == {
        (NASTY, 0): ("crash", "run", 256, "panicked"),
        (NASTY, 1): ("skip", "run", 0, ""),
        ("a.py::test_a", 1): ("error", "run", 1, "k"),
        ("b.py::test_b", 0): ("pass", "compare", 0, ""),
        ("b.py::test_b", 1): ("mismatch", "compare", 256, nasty[0]),
    }
    mismatch = next(entry for entry in evidence if entry["nodeid"].startswith("b.py::test_b[tract-0.23"))
    assert mismatch["outputs"][0]["problem"] == mismatch["error"]["message"] == NASTY
    assert next(entry for entry in evidence if entry.get("expected"))["expected"] == "xfail: known"


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
    assert len([tag for tag, _ in tags.found if tag == "script"]) == 3, "grid, one block of evidence, script"
    assert "&lt;/script&gt;" in page
    assert "{{" in page, "a template inside of a record is text"
    summary = (tmp_path / "summary.md").read_text()
    assert "<" not in summary
    assert all(line.count("|") - line.count("\\|") == 6 for line in summary.splitlines() if "onerror" in line)


def test_no_request_leaves_the_page(records, tmp_path):
    write_report(records, tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert "default-src 'none'" in page
    assert not re.findall(r"""(?:src|href)=["'](?!data:,|#)""", page)
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
    run, plan, *cells, end = records
    write_report([run, plan, *reversed(cells), end], tmp_path / "two")
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
    write_report(whole(cell(f"case_{n}", RECENT, "crash") for n in range(300)), tmp_path)
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
    write_report(whole(cell(f"case_{n}", RECENT, status) for n, status in enumerate(statuses)), tmp_path)
    badge = json.loads((tmp_path / f"badge-tract-{RECENT}.json").read_text())
    assert (badge["label"], badge["message"], badge["color"]) == (f"tract {RECENT}", message, colour)


def test_a_badge_of_a_strange_label_stays_in_the_directory(tmp_path):
    write_report([cell("a", "../../x y")], tmp_path / "site")
    assert [path.name for path in (tmp_path / "site").glob("badge-*")] == ["badge-tract-.._.._x_y.json"]


def test_an_empty_matrix(tmp_path):
    write_report([], tmp_path)
    assert payload((tmp_path / "index.html").read_text())["rows"] == []


def test_twenty_thousand_cells_are_a_small_file(tmp_path):
    records = many_records(20_000)
    assert len(cells_of(records)) == 20_000
    write_report(records, tmp_path)
    assert (tmp_path / "index.html").stat().st_size < 5_000_000


def test_failing_cells_of_one_cause_take_few_bytes_of_the_page(tmp_path):
    sizes = {}
    for count in (200, 2_000):
        error = ErrorLine("ParityError", "1 of 1 outputs differ", fingerprint="ab", details="d" * 400)
        write_report(whole([cell(f"m.py::t[{n}]", RECENT, "mismatch", error=error) for n in range(count)]), tmp_path)
        sizes[count] = (tmp_path / "index.html").stat().st_size
    assert (sizes[2_000] - sizes[200]) / 1_800 < 30, sizes


def test_what_would_make_the_page_large_is_left_out_and_said(tmp_path):
    graphs = [GraphLine(SCHEMA, f"{n:016x}", random.Random(n).randbytes(9_000).hex()) for n in range(300)]
    error = ErrorLine("EngineCrash", "bad", fingerprint="ab", details="d" * 50)
    cells = [cell(f"case_{n}", RECENT, "crash", error=error, graph=f"{n:016x}") for n in range(300)]
    write_report([*graphs, *cells], tmp_path)
    page = (tmp_path / "index.html").read_text()
    evidence = payload(page, "evidence-0") + payload(page, "evidence-1")
    assert len(page) < 3_000_000
    graph_indices = [entry["graph"] for entry in evidence if entry["graph"] >= 0]
    assert 20 < len(graph_indices) < 300
    for entry in evidence:
        if entry["graph"] >= 0:
            text = payload(page, f"graphs-{entry['graph'] >> 12}")[entry["graph"] & 4095]
            assert text == graphs[int(entry["nodeid"].removeprefix("case_").partition("[")[0])].text
    assert [entry["error"]["details"] for entry in evidence].count("d" * 50) == 8
    assert "these are in matrix.jsonl" in evidence[-1]["error"]["details"]


@pytest.mark.parametrize(
    ("shares", "text"),
    [
        ([(2, 2), (3, 3)], "all"),
        ([(0, 2), (0, 2)], "none"),
        ([(0, 0), (0, 0)], "not run"),
        ([(0, 1), (0, 0), (1, 1), (1, 1)], "since c"),
        ([(1, 1), (1, 1), (0, 1), (0, 0)], "until b"),
        ([(0, 1), (1, 1), (1, 1), (0, 1), (1, 1)], "b to c, since e"),
        ([(0, 1), (1, 1), (0, 1)], "b"),
        ([(0, 5), (3, 5), (5, 5)], "since c, partly b (3 of 5)"),
        ([(1, 5), (0, 5)], "partly a (1 of 5)"),
    ],
)
def test_support_ranges(shares, text):
    assert support_ranges([Share(label, *share) for label, share in zip("abcde", shares, strict=False)]) == text


def test_rows_know_what_they_are_about():
    cells = [
        cell("x/test_aten.py::test_aten[relu]", "0.21.19", ops=["aten::relu"], dtype="float16"),
        cell("x/test_aten.py::test_aten[many]", "0.21.19", ops=["aten::add", "aten::mul"]),
        cell("x/test_aten.py::test_aten[told]", "0.21.19", op="aten::gru", ops=["aten::add"]),
        cell("y/test_aten.py::test_b", "0.21.19", "unsupported", error=ErrorLine("LowerError", "no", op="aten::fft")),
        cell("y/test_layer.py::test_c", "0.21.19"),
    ]
    rows = {row.name: row for row in Matrix.of(cells).rows}
    assert {name: (row.op, row.function, row.dtype) for name, row in rows.items()} == {
        "test_aten[relu]": ("aten::relu", "test_aten", "float16"),
        "test_aten[many]": ("", "test_aten", ""),
        "test_aten[told]": ("aten::gru", "test_aten", ""),
        "test_b": ("aten::fft", "test_b", ""),
        "test_c": ("", "test_c", ""),
    }
    assert rows["test_aten[told]"].ops == ["aten::gru", "aten::add"]
    names = Matrix.of(cells).suite_names
    assert names == {"x/test_aten.py": "x/test_aten.py", "y/test_aten.py": "y/test_aten.py", "y/test_layer.py": "layer"}


def test_latency_is_of_the_cases_that_pass_everywhere():
    def timed(case, label, seconds, status="pass", **more):
        return cell(case, label, status, times={"run": seconds}, **more)

    cells = [timed(name, "0.21.19", value) for name, value in (("a", 1.0), ("b", 2.0), ("c", 4.0), ("slow", 99.0))]
    cells += [timed(name, RECENT, value) for name, value in (("a", 2.0), ("b", 1.0), ("c", 2.0))]
    cells += [timed("slow", RECENT, 1.0, "mismatch"), timed("old", "0.21.19", 5.0, reused=True)]
    matrix = Matrix.of([run_line("0.21.19", RECENT), *cells])
    first, second = folded(matrix, ColumnFold(matrix)).columns()
    assert (first.latency.cases, first.latency.middle, first.latency.ratio) == (3, 2.0, None)
    assert (second.latency.middle, second.latency.ratio) == (2.0, 0.5)
    assert first.segments == [("level", "close", 5)]
    assert second.segments == [("level", "close", 3), ("status", "mismatch", 1)]


def test_causes_are_put_together_by_fingerprint(records):
    first, other = (ErrorLine("LowerError", f"2 operators:\n- no rule for {n}", fingerprint=n) for n in ("aa", "bb"))
    cells = [cell(f"c{n}", RECENT, "unsupported", error=first, expected="known" * (n > 0)) for n in range(3)]
    cells += [cell("d", RECENT, "unsupported", error=other), cell("e", RECENT, "mismatch"), cell("f", RECENT)]
    causes = find_causes(cells)
    assert [(cause.key, cause.count, cause.surprises) for cause in causes] == [
        ("aa", 3, 1),
        ("bb", 1, 1),
        ("mismatch@compare:e", 1, 1),
    ]
    assert causes[0].title == "2 operators: no rule for aa"


def test_the_baseline_comes_first_in_the_summary(tmp_path):
    before = whole([cell("a", RECENT), cell("b", RECENT, "crash"), cell("gone", RECENT)])
    after = whole([cell("a", RECENT, "crash"), cell("b", RECENT), cell("new", RECENT)])
    write_report(after, tmp_path, before)
    lines = (tmp_path / "summary.md").read_text().splitlines()
    assert lines[4] == "Since the baseline: 1 regression, 1 gone, 1 new, 1 fix"
    assert lines[8] == f"| regression | a | tract {RECENT} | pass close | crash at run |"
    many = [cell(f"case_{n}", RECENT) for n in range(300)]
    write_report([cell(f"case_{n}", RECENT, "crash") for n in range(300)], tmp_path, many)
    lines = (tmp_path / "summary.md").read_text().splitlines()
    assert len(lines) <= 60
    assert "… and 288 more changes" in lines


def test_records_are_read_back_and_damage_is_named(records, tmp_path):
    path = tmp_path / "matrix.jsonl"
    text = "".join(encode(record) + "\n" for record in records)
    path.write_text(text + '{"type":"cell","sch')
    torn = []
    assert read_records(path, torn.append) == records, "a line that was cut off is left out"
    assert torn == [f"{path}:9: the last line is incomplete; its session was killed while it wrote"]
    with pytest.raises(RecordError, match=r"matrix\.jsonl:9: the last line is incomplete"):
        read_records(path)
    path.write_text(text.rstrip("\n"))
    assert read_records(path) == records, "nothing but the end of the last line is missing"
    for damage in ("nonsense", "\0\0", '{"type":"cell","nodeid":"\udcff"}', "[" * 100_000):
        path.write_text(f"{text}{damage}\n", errors="surrogateescape")
        with pytest.raises(RecordError, match=r"matrix\.jsonl:9: "):
            read_records(path)
    path.write_text(encode(records[0]).replace(f'"schema":{SCHEMA}', '"schema":99') + "\n")
    with pytest.raises(RecordError, match="schema 99"):
        read_records(path)
