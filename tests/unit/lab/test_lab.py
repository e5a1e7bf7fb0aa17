"""Rows, tables, turns, processes and examples that the commands share."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import jinja2
import pytest
import torch
from torch import nn

from conformance.lab.__main__ import commands
from conformance.lab.measure.peers.architectures import larger
from conformance.lab.pages import int8, weights
from conformance.lab.pages.long_tables import LONG, rows_of, split, write_page
from conformance.lab.pages.refusal_kinds import KINDS, kind_of
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
    page, expected = f"a\n{begin}\nold\n{END}\nz\n", f"a\n{begin}\n\n| new |\n\n{END}\nz\n"
    assert with_table(page, begin, "| new |") == expected
    with pytest.raises(ValueError, match="the page has no"):
        with_table("a", begin, "| new |")
    (tmp_path / "page.md").write_text(page)
    show("| new |", begin, tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text() == expected
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
    for path in (tmp_path / "rows.jsonl", tmp_path / "rows.jsonl.gz"):
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
    summaries = dict(commands())
    assert {"conformance.lab.fuzz", "conformance.lab.measure.coverage", "conformance.lab.plant.mutants"} <= set(
        summaries
    )
    assert [name for name, line in summaries.items() if not line.endswith(".") or line[0].islower()] == []


SHORT = "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
ROWS = [[f"`op{index}`", "1.00 x", ""] for index in range(LONG)]
LONG_TABLE = "| operator | time | note |\n|---|---|---|\n" + "".join(f"| {' | '.join(row)} |\n" for row in ROWS)
PAGE = f"# Page\n\n{SHORT}\n## Times, all\n\n{LONG_TABLE}\nAfter it.\n"


def test_long_tables_become_files(tmp_path: Path) -> None:
    page, tables = tmp_path / "docs" / "page.md", tmp_path / "tables"
    write_page(page, PAGE, tables)
    assert [path.name for path in tables.iterdir()] == ["page-times-all.csv"]
    text = page.read_text("utf-8")
    assert SHORT in text
    assert "op1" not in text
    assert text.endswith("\n\nAfter it.\n")
    assert list(rows_of(page, tables)) == ROWS


def test_tables_that_a_page_no_longer_has_are_removed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    write_page(page, PAGE, tmp_path)
    write_page(page, SHORT, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.md"]
    assert page.read_text("utf-8") == SHORT


def test_two_long_tables_need_two_headings() -> None:
    with pytest.raises(ValueError, match="under one heading"):
        split(f"# Page\n\n{LONG_TABLE}\n{LONG_TABLE}", "page")


class Pairs(nn.Module):
    """Takes an even number of steps."""

    def forward(self, x: torch.Tensor, scale: float) -> torch.Tensor:
        return scale * x.view(x.shape[0], -1, 2).sum(2)


def test_an_axis_that_the_model_refuses_keeps_its_size() -> None:
    example = {"x": torch.ones(3, 4), "scale": 2.0}
    more = larger(Pairs(), example, {"x": {0: "B", 1: "T"}})
    assert more["x"].shape == (4, 4)
    assert more["scale"] == 2.0
    assert example["x"].shape == (3, 4)


ROOT = Path(__file__).parents[3]
EXPORTING = {"setup", "input", "capture", "lower", "spec"}


def reasons_of_refusals() -> set[str]:
    reasons = set()
    for name in ("aten.toml", "aten_dynamic.toml", "complete.toml"):
        for entry in tomllib.loads((ROOT / "conformance" / "expectations" / name).read_text("utf-8"))["expect"]:
            if entry["status"] in ("unsupported", "error") and entry["stage"] in EXPORTING:
                reasons.add(entry["reason"].removeprefix("accepted: "))
    return reasons


def test_there_are_five_kinds() -> None:
    assert [kind.name for kind in KINDS] == ["random", "training", "unknown shape", "not expressible", "rare"]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("aten::rand draws random numbers, and a graph has none", "random"),
        ("dropout is active: the module is in training mode", "random"),
        ("the model writes into its input `x3`; an exported graph cannot", "training"),
        ("a size of this model depends on its data (u0)", "unknown shape"),
        ("NNEF 1.0 has no dtype float64", "not expressible"),
        ("no rule for aten::igamma, and PyTorch's decomposition of it ends in prims::igamma", "rare"),
    ],
)
def test_a_message_has_its_kind(message: str, kind: str) -> None:
    refusal_kind = kind_of(f"1 operator of this model cannot be exported:\n- {message}\n    origin: aten::x in forward")
    assert refusal_kind is not None
    assert refusal_kind.name == kind


@pytest.mark.parametrize("message", ["no rule for aten::relu", "no rule for aten::special_zeta2", "KeyError: 'x'", ""])
def test_what_nobody_has_accepted_has_no_kind(message: str) -> None:
    assert kind_of(message) is None


def test_every_expected_refusal_has_a_kind() -> None:
    assert [reason for reason in sorted(reasons_of_refusals()) if kind_of(reason) is None] == []


def test_every_refusal_on_the_support_page_stands_under_a_kind() -> None:
    page = (ROOT / "docs/reference/support.md").read_text("utf-8")
    refused = page.partition("## What is refused")[2].partition("\n## ")[0]
    assert [line.removeprefix("### ").lower() for line in refused.splitlines() if line.startswith("### ")] == [
        kind.name for kind in KINDS
    ]
    refused_operators = set(
        re.findall(r"`([^`]+)`", "".join(line for line in refused.splitlines() if line.startswith("| ")))
    )
    rows = list(rows_of(ROOT / "docs/reference/support.md", ROOT / "docs/reference/tables"))
    assert len(rows) > 2000
    assert {
        operator.strip("`") for operator, dtype, *entries in rows if dtype == "float32" and "no" in entries
    } <= refused_operators
