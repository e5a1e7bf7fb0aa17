"""`t2n matrix` on records made by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import msgspec
import pytest

from pytest_t2n.cli import main
from pytest_t2n.records.file import encode
from pytest_t2n.records.schema import CellLine, ErrorLine, OutputLine
from tests.plugin.report.many_records import whole
from tests.plugin.report.test_report import cell, run_line
from tests.releases import RECENT

OLD, NEW = "0.21.19", RECENT


def write(path, *records):
    path.write_text("".join(f"{encode(record)}\n" for record in whole(records)))
    return str(path)


OUTPUTS = [
    OutputLine("y", "float32", [2], "pass", "close", max_abs=1e-9, mean_abs=5e-10, sqnr="inf"),
    OutputLine("z", "float32", [3], "pass", "close", mean_abs=2e-10, sqnr=-3.5),
    OutputLine("place", "int64", [3], "pass", "close"),
]


@pytest.fixture
def matrix(tmp_path):
    crash = ErrorLine("EngineCrash", "=panic(1)\nsecond line", fingerprint="ab12", details="trace")
    return write(
        tmp_path / "matrix.jsonl",
        run_line(OLD, NEW),
        cell("a.py::test_a[x]", OLD, outputs=OUTPUTS),
        cell("a.py::test_a[x]", NEW, "crash", error=crash),
        cell("a.py::test_b", OLD, "mismatch", expected="known"),
        cell("a.py::test_b", NEW),
        cell("b.py::test_c", OLD),
        cell("b.py::test_c", NEW),
    )


def test_diff_refuses_runs_that_do_not_belong_together(tmp_path, capsys):
    line = run_line(OLD, NEW)
    before = msgspec.structs.replace(line, source="a", versions={"torch": "2.12", "numpy": "2"}, platform="x")
    after = msgspec.structs.replace(line, source="b", versions={"torch": "2.13", "onnx": "1"}, platform="y")
    files = [write(tmp_path / f"{n}.jsonl", run, cell("a.py::test_b", OLD)) for n, run in enumerate((before, after))]
    assert main(["matrix", "diff", *files]) == 1
    refusal = capsys.readouterr().err
    assert "error: these runs are of different states of the project's Python files; different versions: " in refusal
    assert "--allow-sources --allow-versions --allow-platforms" in refusal
    assert main(["matrix", "diff", *files, "--allow-sources", "--allow-platforms"]) == 1
    assert capsys.readouterr().err.startswith("error: these runs are of different versions: numpy 2 and none")
    assert main(["matrix", "diff", *files, "--allow-sources", "--allow-versions", "--allow-platforms"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "these runs are of different states of the project's Python files",
        "these runs are of different versions: numpy 2 and none, onnx none and 1, torch 2.12 and 2.13",
        "these runs are of different platforms: x and y",
        "0 changes, 0 for the worse",
    ]


def test_diff_of_two_files_and_of_two_engines(matrix, tmp_path, capsys):
    later = write(
        tmp_path / "later.jsonl",
        cell("a.py::test_a[x]", OLD, "mismatch"),
        cell("a.py::test_a[x]", NEW, "oom"),
        cell("a.py::test_b", OLD),
        msgspec.structs.replace(cell("a.py::test_b", NEW), level="super"),
        msgspec.structs.replace(cell("b.py::test_c", OLD), level="exact"),
        cell("c.py::test_d", NEW),
    )
    assert main(["matrix", "diff", matrix, later, "--json"]) == 1
    out, err = capsys.readouterr()
    changes = [json.loads(line) for line in out.splitlines()]
    assert [(change["kind"], change["case"], change["column"]) for change in changes] == [
        ("regression", "a.py::test_a[x]", f"tract {OLD}"),
        ("looser", "a.py::test_b", f"tract {NEW}"),
        ("other failure", "a.py::test_a[x]", f"tract {NEW}"),
        ("gone", "b.py::test_c", f"tract {NEW}"),
        ("new", "c.py::test_d", f"tract {NEW}"),
        ("tighter", "b.py::test_c", f"tract {OLD}"),
        ("fix", "a.py::test_b", f"tract {OLD}"),
    ]
    assert (changes[0]["before"], changes[0]["after"]) == ("pass close", "mismatch at compare")
    assert err == "7 changes, 3 for the worse\n"
    assert main(["matrix", "diff", matrix, matrix]) == 0
    assert capsys.readouterr().err == "0 changes, 0 for the worse\n"
    assert main(["matrix", "diff", matrix, "--engines", f"tract {OLD}", f"tract {NEW}"]) == 1
    assert "regression" in capsys.readouterr().out
    assert main(["matrix", "diff", matrix, "--engines", "tract 0.1", f"tract {NEW}"]) == 1
    assert "no cell of 'tract 0.1'" in capsys.readouterr().err
    assert main(["matrix", "diff", matrix]) == 1


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ((), 6),
        (("--case", "test_a[x]"), 2),
        (("--case", "*.py::test_?", "--engine", "tract 0.21*"), 2),
        (("--status", "crash,mismatch"), 2),
        (("--stage", "run"), 1),
        (("--level", "close"), 4),
        (("--surprises",), 1),
        (("--differs",), 4),
        (("--fingerprint", "ab12"), 1),
        (("--status", "oom"), 0),
    ],
)
def test_query(matrix, capsys, arguments, count):
    assert main(["matrix", "query", matrix, "--json", *arguments]) == (0 if count else 1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == count
    assert all(msgspec.json.decode(line, type=CellLine) for line in lines)
    main(["matrix", "query", matrix, *arguments])
    assert f"{count} cells" in capsys.readouterr().out


def test_renderings(matrix, tmp_path, capsys):
    assert main(["matrix", "html", str(tmp_path), "-o", str(tmp_path / "site")]) == 0
    assert (tmp_path / "site" / "index.html").exists()
    assert main(["matrix", "badge", matrix, "-o", str(tmp_path / "badges")]) == 0
    assert len(list((tmp_path / "badges").iterdir())) == 2
    capsys.readouterr()
    assert main(["matrix", "md", matrix]) == 0
    assert "| tract 0.21.19 |" in capsys.readouterr().out
    assert main(["matrix", "csv", matrix]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 6
    assert (rows[1]["status"], rows[1]["message"], rows[0]["max_abs"]) == ("crash", "'=panic(1)", "1e-09")
    assert [(row["mean_abs"], row["sqnr"]) for row in rows[:2]] == [("5e-10", "-3.5"), ("", "")]
    assert main(["matrix", "ctrf", matrix]) == 0
    ctrf = json.loads(capsys.readouterr().out)
    assert (ctrf["reportFormat"], ctrf["results"]["tool"]["name"]) == ("CTRF", "pytest-t2n")
    summary = ctrf["results"]["summary"]
    assert [summary[name] for name in ("tests", "passed", "failed", "skipped", "other", "pending")] == [
        6,
        4,
        1,
        1,
        0,
        0,
    ]
    crash = ctrf["results"]["tests"][1]
    assert (crash["status"], crash["rawStatus"], crash["trace"]) == ("failed", "crash", "trace")


def test_what_is_printed_can_be_a_file(matrix, tmp_path, capsys):
    for name in ("md", "csv", "ctrf", "schema"):
        arguments = () if name == "schema" else (matrix,)
        assert main(["matrix", name, *arguments]) == 0
        printed = capsys.readouterr().out
        assert main(["matrix", name, *arguments, "-o", str(tmp_path / name)]) == 0
        assert capsys.readouterr().out == ""
        assert (tmp_path / name).read_text() == printed


def test_a_baseline_of_another_file(matrix, tmp_path, capsys):
    before = write(tmp_path / "before.jsonl", run_line(OLD), cell("a.py::test_a[x]", OLD, "crash"))
    assert main(["matrix", "md", matrix, "--baseline", before]) == 0
    assert "Since the baseline: 5 new, 1 fix" in capsys.readouterr().out
    assert main(["matrix", "html", matrix, "--baseline", before, "-o", str(tmp_path / "site")]) == 0
    assert "Since the baseline: 5 new, 1 fix" in (tmp_path / "site" / "summary.md").read_text()
    assert main(["matrix", "html", matrix, "--baseline", "nowhere", "-o", str(tmp_path / "site")]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_the_schema_describes_every_line(matrix, capsys):
    assert main(["matrix", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    kinds = {name.lower().removesuffix("line"): part for name, part in schema["$defs"].items()}
    for line in Path(matrix).read_bytes().splitlines():
        record = json.loads(line)
        part = kinds[record["type"]]
        assert set(part["required"]) <= set(record) <= set(part["properties"])
    assert {option["$ref"] for option in schema["anyOf"]} == {
        f"#/$defs/{name}Line" for name in ("Run", "Cell", "Plan", "Graph", "End")
    }


def test_accept_and_merge_of_other_engines(matrix, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["matrix", "accept", matrix, "--expect", "known.toml"]) == 0
    assert capsys.readouterr().out.startswith("1 cases written, 0 removed, known.toml")
    assert f'engine = "tract=={RECENT}"' in (tmp_path / "known.toml").read_text()
    first = write(tmp_path / "one.jsonl", run_line(OLD), cell("a", OLD))
    second = write(tmp_path / "two.jsonl", run_line(NEW), cell("a", NEW))
    assert main(["matrix", "merge", first, second, "-o", "both.jsonl"]) == 0
    assert main(["matrix", "merge", "both.jsonl", second, "-o", "no.jsonl"]) == 1
    assert "error: 1 in more than one file:" in capsys.readouterr().err
    assert main(["matrix", "merge", "both.jsonl", second, "-o", "again.jsonl", "--allow-rerun"]) == 0
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "both.jsonl").read_text()


def test_files_that_cannot_be_read_are_named(tmp_path, capsys):
    assert main(["matrix", "md", str(tmp_path / "none.jsonl")]) == 1
    assert "none.jsonl" in capsys.readouterr().err
    (tmp_path / "bad.jsonl").write_text("x\n")
    assert main(["matrix", "query", str(tmp_path / "bad.jsonl")]) == 1
    assert "bad.jsonl:1: " in capsys.readouterr().err


def test_junit_properties_are_opt_in(suite):
    suite.pytester.makepyfile("import pytest\n@pytest.mark.nnef_export\ndef test_it(): return 'pass', (1,)")
    suite.run("--junitxml=junit.xml", "--t2n-junit-properties", engines="0.23")
    text = (suite.path / "junit.xml").read_text()
    for name, value in (("engine", f"tract {RECENT}"), ("status", "pass"), ("stage", "compare"), ("level", "exact")):
        assert f'<property name="t2n_{name}" value="{value}"' in text
