"""`t2n export-llm` takes the options of t2n_export_llm_to_tract, with a note for each, or says what to write."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from pytest_t2n.cli.command import main
from pytest_t2n.cli.exports import export_llm
from pytest_t2n.cli.migrate.options import rename_options
from pytest_t2n.cli.migrate.table import moves
from pytest_t2n.cli.parser import Parser
from tests.releases import NEWEST

OPTIONS = [(name, move) for move in moves() if move.kind == "option" for name in move.old.split()]


def parsed(*arguments: str) -> argparse.Namespace:
    parser = Parser()
    export_llm.add_commands(parser)
    return parser.parse_args(arguments)


def test_old_options_are_those_of_this_command(capsys: pytest.CaptureFixture[str]) -> None:
    old_options = ("-d", "model", "-e=out", "-dt", "f16", "-c", "min_max_q4_0_all")
    options = parsed(*old_options, f"--tract-specific-version={NEWEST}")
    assert (options.folder, options.output, options.dtype) == ("model", Path("out"), "f16")
    assert (options.weights, options.tract) == ("q4_0", NEWEST)
    notes = capsys.readouterr().err.splitlines()
    assert len(notes) == 5
    assert (
        notes[0] == "note: `-d` of t2n_export_llm_to_tract is written `FOLDER` here: the folder is the first argument"
    )


def test_flags_and_values_that_are_not_needed(capsys: pytest.CaptureFixture[str]) -> None:
    old_options = ["model", "-e", "out", "-nv", "-v", "--device-map", "auto", "--num-logits-to-keep", "4", "-n", "raw"]
    options = parsed(*old_options, "--num-logits-to-keep=0", "-sgts", "9", "-tt=close")
    assert (options.folder, options.output, options.no_check, options.last_logits) == ("model", Path("out"), True, 4)
    assert (options.steps, options.tolerance) == (9, "close")
    assert "`--device-map` of t2n_export_llm_to_tract is not needed here" in capsys.readouterr().err


def test_new_options_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["model", "-o", "out", "--weights", "lm_head=float32,*=q4_0", "--tract=0.23"]
    assert rename_options(options) == options
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", [name for name, move in OPTIONS if move.change == "error"])
def test_an_option_without_a_counterpart_is_an_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export-llm", "model", "-o", "out", name, "x"]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"error: `{name}` is an option of t2n_export_llm_to_tract")
    assert "hint: " in err


@pytest.mark.parametrize(("name", "new"), [(name, move.new) for name, move in OPTIONS if move.new])
def test_each_new_option_exists(name: str, new: str) -> None:
    value = "7" if new in ("--steps", "--last-logits") else "f16" if new == "--dtype" else "x"
    old = [name] if "=" in name else [name, value]
    if next(move for other, move in OPTIONS if other == name).change == "rename":
        old = [name]
    base = [] if new == "FOLDER" else ["model"]
    assert parsed(*base, *([] if new == "-o" else ["-o", "out"]), *old)
