"""The judgement of ONNX's cases, the table of verdicts, and the pages of the site."""

from __future__ import annotations

import importlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import yaml

from conformance.dialect import findings
from conformance.onnx.cases import OnnxCase
from conformance.onnx.judge import compare
from conformance.onnx.known import CAUSES, cause_of
from conformance.onnx.page import CASES, INDEX, pages
from conformance.onnx.session import read_verdicts
from conformance.onnx.table import Row, Table, Verdict, read, spans, totals, write
from tests.releases import LINES, NEWEST
from tools.site_pages import FOLDERS

ROOT = Path(__file__).parents[3]
EXPECTED = np.array([1.0, -2.0, np.nan, np.inf], "f4")
CASE = OnnxCase("case", "Relu", 13, onnx.ModelProto(), (), (EXPECTED,), rtol=1e-3, atol=1e-7)
ROW = Row(
    "case",
    "Relu",
    13,
    {"0.21.8": "refused", "0.21.9": "wrong", "0.21.10": "wrong", "0.22.1": "refused"},
    "off",
    "option",
)


@pytest.mark.parametrize(
    ("outputs", "status", "reason"),
    [
        ([[1.0, -2.0, np.nan, np.inf]], "right", ""),
        ([[1.0009, -2.0, np.nan, np.inf]], "right", ""),
        ([[1.009, -2.0, np.nan, np.inf]], "rounding", "off by 0.009 in 1 of 4 elements"),
        ([[1.011, -2.003, np.nan, np.inf]], "wrong", "off by 0.011 in 2 of 4 elements"),
        ([[np.nan, -2.0, np.nan, np.inf]], "wrong", "nan, not 1.0 in 1 of 4 elements"),
        ([[1.0, -2.0, np.nan, -np.inf]], "wrong", "-inf, not inf in 1 of 4 elements"),
        ([[1.0, -2.0, 0.0, np.inf]], "wrong", "0.0, not nan in 1 of 4 elements"),
        ([[1.0, -2.0]], "wrong", "shape [2], not [4]"),
        ([[1.0]] * 2, "wrong", "2 outputs, not 1"),
    ],
)
def test_verdicts_on_outputs(outputs: list[Any], status: str, reason: str) -> None:
    verdict = compare([np.array(values, "f4") for values in outputs], CASE)
    assert (verdict.status, verdict.reason) == (status, reason)


def test_another_type_is_wrong_and_integers_never_round() -> None:
    assert compare([EXPECTED.astype("f8")], CASE) == Verdict("wrong", "float64, not float32")
    case = replace(CASE, outputs=(np.array([100]),), rtol=0.001)
    assert compare([np.array([101])], case).status == "wrong"


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    table = Table("1.23.2", tuple(ROW.statuses), {"bfloat16": 27, "list": 25}, (ROW, replace(ROW, case="other")))
    write(table, tmp_path / "verdicts.tsv")
    assert (
        "\ncase\tRelu\t13\trefused 0.21.8,0.22.1; wrong 0.21.9..0.21.10\toff\toption\n"
        in (tmp_path / "verdicts.tsv").read_text()
    )
    assert read(tmp_path / "verdicts.tsv") == table
    assert spans(ROW.statuses) == [("refused", "0.21.8,0.22.1"), ("wrong", "0.21.9..0.21.10")]


def test_a_line_that_was_broken_off_is_removed(tmp_path: Path) -> None:
    file, row = tmp_path / f"{NEWEST}.jsonl", json.dumps({"case": "case", "status": "right", "reason": ""})
    file.write_text(f'{row}\n{{"case": "oth')
    for _ in range(2):
        assert read_verdicts(NEWEST, tmp_path) == {"case": Verdict("right")}
        assert file.read_text() == f"{row}\n"
    file.write_text('{"case": "oth')
    assert read_verdicts(NEWEST, tmp_path) == {}


def test_the_table_has_every_case_in_every_release() -> None:
    table = read()
    assert list(table.releases) == findings.read()[0]
    assert set(LINES) <= set(table.releases)
    assert {tuple(row.statuses) for row in table.rows} == {table.releases}
    assert len({row.case for row in table.rows}) == len(table.rows)
    assert all(bool(row.refusal) == (row.statuses[NEWEST] == "refused") for row in table.rows)
    assert len(table.rows) + sum(table.left_out.values()) == 1884 + 26


def test_everything_wrong_has_a_cause_and_every_cause_is_met() -> None:
    wrong = {row.case for row in read().rows if "wrong" in row.statuses.values()}
    assert [case for case in sorted(wrong) if cause_of(case) is None] == []
    assert [cause.name for cause in CAUSES if cause.example not in wrong] == []
    for cause in CAUSES:
        for pattern in cause.others:
            assert any(replace(cause, example=pattern, others=()).explains(case) for case in wrong), pattern


def test_reversed_recurrent_operators_are_wrong_in_every_release() -> None:
    rows = {row.case: row for row in read().rows}
    for case in ("test_lstm_reverse", "test_gru_reverse", "test_simple_rnn_reverse"):
        assert set(rows[case].statuses.values()) == {"wrong"}


def test_the_pages_have_the_totals_and_every_case() -> None:
    table, texts = read(), pages()
    counts = totals(table.rows, NEWEST)
    assert f"| {NEWEST} | {counts['right']} | {counts['rounding']} | {counts['refused']} |" in texts[INDEX]
    assert re.findall(r"^\| `(test_\w+)`", texts[CASES], re.MULTILINE) == [row.case for row in table.rows]
    for name, anchor in re.findall(r"\[([^\]]+)\]\(cases\.md#([^)]+)\)", texts[INDEX]):
        assert f"\n## {name}\n" in texts[CASES]
        assert anchor == re.sub(r"[^\w\s-]", "", name.lower()).replace(" ", "-")
    for cause in CAUSES:
        assert cause.reason in texts[INDEX]


def test_the_navigation_has_the_pages_that_are_made_of_data() -> None:
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "tools/site_pages.py" in yaml.safe_load(text)["hooks"]
    for folder, module in FOLDERS.items():
        assert re.findall(rf"- {folder}/(\w+)\.md", text) == list(importlib.import_module(module).pages())
