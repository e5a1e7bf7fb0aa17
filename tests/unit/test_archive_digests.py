"""The comparison of two files of digests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.archive_digests import _without_place, differences, main


def test_cells_that_differ_or_stand_in_one_file_only() -> None:
    before = {"a": ["1"], "b": ["2", "3"], "c": ["4"]}
    after = {"a": ["1"], "b": ["2", "5"], "d": ["6"]}
    assert differences(before, after) == [
        "b: ['2', '3'] -> ['2', '5']",
        "c: ['4'] -> no such cell",
        "d: no such cell -> ['6']",
    ]


def test_a_refusal_is_the_same_wherever_the_model_stands() -> None:
    messages = [
        f"fixes T to 1, decided by aten::slice at {place}" for place in ("/a/old.py:39 in forward", "/b/new.py:7")
    ]
    assert {_without_place(message) for message in messages} == {"fixes T to 1, decided by aten::slice"}
    assert _without_place("no rule for aten::fft_fft") == "no rule for aten::fft_fft"


def test_the_exit_says_whether_all_are_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / name for name in ("before.json", "after.json")]
    for file, digest in zip(files, "12", strict=True):
        file.write_text(json.dumps({"a": [digest]}))
    assert main(["compare", *map(str, files)]) == 1
    assert "1 of 1 cells differ" in capsys.readouterr().out
    assert main(["compare", str(files[0]), str(files[0])]) == 0
