"""Names and messages arrive in the terminal as they are: nothing in them is markup, and nothing steers the terminal."""

from __future__ import annotations

import json

import pytest

from pytest_t2n.cli import main
from pytest_t2n.cli.output import say, show_table
from pytest_t2n.records.schema import ErrorLine
from pytest_t2n.report.write import write_report
from tests.plugin.cli.test_matrix import NEW, OLD, write
from tests.plugin.report.many_records import whole
from tests.plugin.report.test_report import cell, payload, run_line

NAMES = (
    "test_a[x]",
    "test_b[/data/x.wav]",
    "test_c[bold]",
    "test_d[:smile:]",
    "test_e[link=https://x]",
    "test_f[\\[a]",
)
STEERING = "\x1b[2Jgone\x9b1mbold\u202e"
SHOWN = r"\x1b[2Jgone\x9b1mbold\u202e"


@pytest.fixture
def matrix(tmp_path):
    cells = [cell(f"a.py::{name}", OLD, error=ErrorLine("E", f"{name} {STEERING}")) for name in NAMES]
    failed = [cell(f"a.py::{name}", NEW, "crash", error=ErrorLine("E", f"{name} {STEERING}")) for name in NAMES]
    return write(tmp_path / "matrix.jsonl", run_line(OLD, NEW), *cells, *failed)


def test_query_and_diff_print_whole_names(matrix, capsys):
    assert main(["matrix", "query", matrix]) == 0
    printed = capsys.readouterr().out
    for name in NAMES:
        assert printed.count(f"a.py::{name} ") == 2
        assert printed.count(f"{name} {SHOWN}") == 2
    assert main(["matrix", "diff", matrix, "--engines", f"tract {OLD}", f"tract {NEW}"]) == 1
    changed = capsys.readouterr().out
    assert all(f"a.py::{name} " in changed for name in NAMES)
    assert not set(STEERING) & {"\x1b", "\x9b", "\u202e"} & set(printed + changed)
    assert main(["matrix", "diff", matrix, "--engines", "[/x]", f"tract {NEW}"]) == 1
    assert "error: no cell of '[/x]'" in capsys.readouterr().err


def test_tables_and_lines_show_what_they_are_given(capsys):
    show_table(("case",), [(name,) for name in (*NAMES, STEERING)])
    for name in NAMES:
        say(f"{name} {STEERING}")
    printed = capsys.readouterr().out
    assert all(printed.count(name) == 2 for name in NAMES)
    assert printed.count(SHOWN) == 1 + len(NAMES)


def test_a_folder_of_any_name(matrix, tmp_path, capsys):
    folder = tmp_path / "[red]" / "[" / "x]"
    assert main(["matrix", "badge", matrix, "-o", str(folder)]) == 0
    assert capsys.readouterr().out == f"2 badges in {folder}\n"
    assert main(["matrix", "html", matrix, "-o", str(folder)]) == 0
    assert f"report: {folder / 'index.html'}\n" in capsys.readouterr().out
    assert main(["engines", "list", "--cache-dir", str(folder)]) == 0
    assert capsys.readouterr().out.endswith(f"cache: {folder}\n")
    assert main(["engines", "clean", "0.21", "--cache-dir", str(folder)]) == 0
    assert capsys.readouterr().out == f"nothing to delete in {folder}\n"


def test_the_page_the_summary_and_the_table_show_control_characters(tmp_path):
    records = whole([run_line(OLD), cell(f"a.py::test[{STEERING}]", OLD, "crash", error=ErrorLine("E", STEERING))])
    write_report(records, tmp_path)
    page, summary = (tmp_path / "index.html").read_text(), (tmp_path / "summary.md").read_text()
    assert SHOWN in page
    assert SHOWN.replace("\\", "\\\\").replace("[", "\\[") in summary
    data = json.dumps([payload(page), payload(page, "evidence-0")], ensure_ascii=False)
    assert data.count(json.dumps(SHOWN)[1:-1]) >= 3, "its row, its cause, its message"
    for text in (page, summary, data):
        assert not {"\x1b", "\x9b", "\u202e"} & set(text)
        assert "\\u001b" not in text
