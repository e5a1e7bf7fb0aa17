"""The index of operators names the file and the function of every rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2n_core.op.registry import load_default
from tools.operator_index import main, rows

ROOT = Path(__file__).parents[3]


def test_every_rule_has_a_row_and_every_row_a_line_of_code() -> None:
    found = list(rows())
    assert sorted(key for key, _, _ in found) == sorted(rule.key for rule in load_default())
    for key, place, function in found:
        path, _, line = place.rpartition(":")
        lines = (ROOT / path).read_text("utf-8").splitlines()[int(line) - 1 :]
        name = function.split(" (")[0].rpartition(".")[2]
        header = "\n".join(lines[:30])
        assert f"def {name}(" in header or "lambda" in header, f"{key}: no {function} at {place}"


def test_rows_are_chosen_by_words_and_say_their_limits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grid_sampler_2d", "aten::hardshrink"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == ["aten::grid_sampler_2d", "aten::hardshrink"]
    assert printed[0].endswith("grid_sampler (tract since 0.23.3)")
    assert "t2n_core/op/aten/activation.py:" in printed[1]
    assert main(["no::such"]) == 1
