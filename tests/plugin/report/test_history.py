"""Runs over time: a Parquet file for each, and a page that says since when what fails."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from pytest_t2n.cli import main
from pytest_t2n.records.file import write_records
from pytest_t2n.records.schema import ErrorLine
from tests.plugin.report.many_records import many_records, whole
from tests.plugin.report.test_report import cell, run_line
from tests.releases import RECENT

duckdb = pytest.importorskip("duckdb", reason="pip install 'pytest-t2n[history]'")

OLD, NEW = "0.21.19", RECENT
COURSES = {
    # case, engine: status in each of four runs; "" where it did not run
    ("a.py::test_steady", NEW): ("pass", "pass", "pass", "pass"),
    ("a.py::test_broken", NEW): ("pass", "pass", "crash", "crash"),
    ("a.py::test_never", NEW): ("mismatch", "mismatch", "mismatch", "mismatch"),
    ("a.py::test_mended", NEW): ("crash", "crash", "crash", "pass"),
    ("a.py::test_twice", OLD): ("crash", "pass", "crash", ""),
    ("a.py::test_<b>&\u202e", NEW): ("", "pass", "pass", "oom"),
    ("a.py::test_weak", NEW): ("", "", "", "weak"),
    ("a.py::test_skipped", NEW): ("pass", "skip", "crash", "skip"),
}
DIGESTS = {"a.py::test_twice": "ab" * 32}
"""Cases whose archive is the same in all runs."""


def write_run(folder: Path, number: int) -> Path:
    """The file of a run."""
    cells = []
    for (case, label), statuses in COURSES.items():
        if statuses[number]:
            error = ErrorLine("E", "it says 7", fingerprint="f") if statuses[number] in ("crash", "oom") else None
            made = cell(case, label, statuses[number], error=error)
            digest = DIGESTS.get(case, f"{number:064x}")
            cells.append(msgspec.structs.replace(made, archive_sha256=digest, times={"run": 0.5, "load": 1.0}))
    run = msgspec.structs.replace(run_line(OLD, NEW), started=f"2026-0{number + 1}-02T03:04:05+00:00")
    path = folder / f"{number}.jsonl"
    write_records(path, whole([run, *cells]))
    return path


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A history of four runs, added in another order."""
    for number in (2, 0, 3, 1):
        arguments = [
            str(write_run(tmp_path, number)),
            "--to",
            str(tmp_path / "history"),
            "--source",
            f"commit {number}",
        ]
        assert main(["history", "add", *arguments]) == 0
    return tmp_path / "history"


def section(text: str, name: str) -> list[list[str]]:
    """The cells of the table under a heading, as text."""
    (part,) = re.findall(rf'<section aria-labelledby="{name}-title">(.*?)</section>', text, re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", part.partition("<tbody>")[2], re.DOTALL)
    return [[re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
            for row in rows]  # fmt: skip


def test_the_page_says_since_when_what_fails(history, tmp_path, capsys):
    assert main(["history", "html", str(history), "-o", str(tmp_path / "site")]) == 0
    text = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "\u202e" not in text
    rows = [row[:5] for row in section(text, "since")]
    assert rows == [
        ["2026-04-02", "2026-03-02", "a.py::test_&lt;b&gt;&amp;\\u202e", f"tract {RECENT}", "oom run"],
        ["2026-04-02", "never", "a.py::test_weak", f"tract {RECENT}", "weak run"],
        ["2026-03-02", "2026-02-02", "a.py::test_broken", f"tract {RECENT}", "crash run"],
        ["2026-03-02", "2026-02-02", "a.py::test_twice", "tract 0.21.19", "crash run"],
        ["2026-01-02", "never", "a.py::test_never", f"tract {RECENT}", "mismatch compare"],
    ]
    assert "5 cells fail in the last run of their engine" in text
    assert section(text, "flakes") == [["a.py::test_twice", "tract 0.21.19", "crash pass crash"]]
    lines = {row[0]: row[2:] for row in section(text, "lines")}
    assert lines == {"tract 0.21": ["0.00 %", "0.00 % 0 / 1"], "tract 0.23": ["60.00 %", "33.33 % 2 / 6"]}
    runs = section(text, "runs")
    assert [(row[0], row[4]) for row in runs] == [(f"2026-0{n + 1}-02 03:04", f"commit {n}") for n in (3, 2, 1, 0)]
    (part,) = (tmp_path / "site").glob("cases-*/0.js")
    assert "a.py::test_steady" in part.read_text()


def test_a_page_of_somebody_else_is_refused_and_one_of_a_history_replaced(history, tmp_path, capsys):
    site = tmp_path / "site"
    site.mkdir()
    for foreign in ("<title>mine</title>", "<title>t2n parity</title>"):
        (site / "index.html").write_text(foreign)
        assert main(["history", "html", str(history), "-o", str(site)]) != 0
        assert (
            "index.html is not from a history, and would be overwritten: name another directory"
            in capsys.readouterr().err
        )
        assert (site / "index.html").read_text() == foreign
        assert [path.name for path in site.iterdir()] == ["index.html"]
    (site / "index.html").unlink()
    for _ in range(2):
        assert main(["history", "html", str(history), "-o", str(site)]) == 0


def test_a_run_is_added_once_whoever_adds_it(tmp_path, capsys):
    path = write_run(tmp_path, 0)
    arguments = ["history", "add", str(path), "--to", str(tmp_path / "history")]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(main, [arguments] * 3)) == [0, 0, 0]
    assert main(arguments) == 0
    assert "in the history already" in capsys.readouterr().out.splitlines()[-1]
    names = sorted(path.name for path in (tmp_path / "history" / "runs").iterdir())
    assert [name.partition(".")[2] for name in names] == ["json", "parquet"]


def test_a_run_without_a_column_is_refused(history, tmp_path, capsys):
    path = min((history / "runs").glob("*.parquet"))
    duckdb.sql(f"COPY (SELECT * EXCLUDE operators FROM '{path}') TO '{path}.new' (FORMAT parquet)")
    path.with_name(f"{path.name}.new").replace(path)
    assert main(["history", "html", str(history), "-o", str(tmp_path / "site")]) == 1
    assert f"{path} has no column operators" in capsys.readouterr().err


def test_what_is_not_whole_is_added_only_if_that_is_meant(tmp_path, capsys):
    path = tmp_path / "cut.jsonl"
    write_records(path, many_records(20)[:-3])
    arguments = ["history", "add", str(path), "--to", str(tmp_path / "history")]
    assert main(arguments) == 1
    assert not (tmp_path / "history").exists()
    assert main([*arguments, "--allow-incomplete"]) == 0
    assert main(["history", "html", str(tmp_path / "history"), "-o", str(tmp_path / "site")]) == 0
    assert "incomplete: 18 of 20 cells" in (tmp_path / "site" / "index.html").read_text()


def test_damaged_runs_are_named_and_left_out(history, tmp_path, capsys):
    first, second, *_ = sorted((history / "runs").glob("*.json"))
    first.write_text('{"schema": "x"}')
    second.with_suffix(".parquet").unlink()
    assert main(["history", "html", str(history), "-o", str(tmp_path / "site")]) == 1
    stderr = capsys.readouterr().err
    assert f"left out: {first}: " in stderr
    assert f"left out: {second.with_suffix('.parquet')} is missing" in stderr
    assert "2 runs, 2026-03-02 to 2026-04-02" in (tmp_path / "site" / "index.html").read_text()
    third = sorted((history / "runs").glob("*.parquet"))[-1]
    third.write_bytes(b"PAR1 no such thing")
    assert main(["history", "html", str(history), "-o", str(tmp_path / "site")]) == 1
    assert "error: DuckDB: " in capsys.readouterr().err
    assert main(["history", "html", str(tmp_path / "none"), "-o", str(tmp_path / "site")]) == 1
    assert "has no runs" in capsys.readouterr().err


def test_the_cells_as_parquet(tmp_path, capsys):
    records = many_records(300)
    write_records(tmp_path / "matrix.jsonl", records)
    path = tmp_path / "out" / "cells.parquet"
    assert main(["matrix", "export", str(tmp_path), "--parquet", str(path)]) == 0
    assert capsys.readouterr().out == f"300 cells in {path}\n"
    relation = duckdb.sql(
        f"""SELECT "case", engine, status, level, seconds, ops, outputs, operators FROM '{path}' ORDER BY nodeid"""
    )
    cells = sorted((record for record in records if hasattr(record, "nodeid")), key=lambda cell: cell.nodeid)
    expected = [(cell.case, cell.engine, cell.status, cell.level, sum(cell.times.values()), cell.ops) for cell in cells]
    rows = relation.fetchall()
    assert [row[:6] for row in rows] == expected
    assert msgspec.json.decode(rows[0][6]) == msgspec.to_builtins(cells[0].outputs)
    assert [msgspec.json.decode(row[7]) for row in rows] == [cell.operators for cell in cells]
    assert any(cell.operators for cell in cells)


def test_without_duckdb_it_is_told_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    path = write_run(tmp_path, 0)
    assert main(["matrix", "export", str(path), "--parquet", str(tmp_path / "x.parquet")]) == 1
    assert "error: a database of runs needs duckdb: pip install 'pytest-t2n[history]'" in capsys.readouterr().err
