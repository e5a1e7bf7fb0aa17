"""Rows, tables, turns and processes that the commands share."""

from __future__ import annotations

from pathlib import Path

import jinja2
import pytest

from conformance.lab.__main__ import commands
from conformance.lab.pages import int8, weights
from conformance.lab.pages.render import render
from conformance.lab.pages.tables import END, figures_table, show, table, with_table
from conformance.lab.processes import ask_module, run_module
from conformance.lab.rows import RowFile, read_rows
from conformance.lab.timing import Stopwatch, in_turns, ratio

STAGES = {"PyTorch's capture": 1.0, "lowering": 0.5}


@pytest.mark.parametrize("begin", [int8.BEGIN, weights.BEGIN])
def test_a_page_takes_the_table_between_its_marks(
    begin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, wanted = f"a\n{begin}\nold\n{END}\nz\n", f"a\n{begin}\n\n| new |\n\n{END}\nz\n"
    assert with_table(page, begin, "| new |") == wanted
    with pytest.raises(ValueError, match="the page has no"):
        with_table("a", begin, "| new |")
    (tmp_path / "page.md").write_text(page)
    show("| new |", begin, tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text() == wanted
    show("| new |", begin, None)
    assert capsys.readouterr().out == "| new |\n"


def test_a_template_needs_all_of_its_values() -> None:
    assert "| lowering | 0.50 | 33 % | 0.50 x |" in render("stages", results={"stages": STAGES})
    with pytest.raises(jinja2.UndefinedError, match="results"):
        render("stages")


def test_a_table_escapes_bars_and_has_a_line_below_its_head() -> None:
    rows = [["a|b", "1"], ["c", ""]]
    body = "| a\\|b | 1 |\n| c |  |"
    assert table(["net", "n"], rows) == f"| net | n |\n|---|---|\n{body}"
    assert figures_table(["net", "n"], rows) == f"| net | n |\n| --- | ---: |\n{body}"


def test_rows_are_continued_or_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert read_rows(path) == []
    RowFile(path).add({"n": 1})
    RowFile(path).add({"n": 2})
    assert read_rows(path, path) == 2 * [{"n": 1}, {"n": 2}]
    RowFile(path, anew=True).add({"n": 3})
    assert read_rows(path) == [{"n": 3}]
    RowFile(None, anew=True).add({"n": 4})


def test_turns_alternate_and_ratios_are_of_neighbours() -> None:
    assert "".join(in_turns("abc", 3)) == "abccbaabc"
    assert ratio([2.0, 30.0, 4.0], [1.0, 10.0, 4.0]) == 2
    watch = Stopwatch()
    sum(range(100_000))
    assert watch.cpu > 0
    assert watch.wall > 0


def test_a_module_answers_a_job_or_says_why_not(tmp_path: Path) -> None:
    assert ask_module("json.tool", job={"a": [1]}) == {"a": [1]}
    died = run_module("json.tool", tmp_path / "no such file")
    assert died.returncode
    assert "no such file" in died.stderr


def test_each_command_is_listed_with_a_line_of_help() -> None:
    found = dict(commands())
    assert {"conformance.lab.fuzz", "conformance.lab.measure.coverage", "conformance.lab.plant.mutants"} <= set(found)
    assert [name for name, line in found.items() if not line.endswith(".") or line[0].islower()] == []
