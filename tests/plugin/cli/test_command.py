"""The command itself: its help, its suggestions, tables in a pipe, completion, and arguments that are checked early."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_t2n.cli.command import FAMILIES, main
from pytest_t2n.cli.output import show_table
from t2n_core.engine import ResolvedEngine
from t2n_core.level import TractCheckTolerance
from tests.releases import RECENT


def test_help_lists_each_command_once_in_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    for name, family in FAMILIES.items():
        assert shown.count(f"  {name} ") >= 1, name
        assert shown.count(family.help) == 1, name
    assert shown.index("Write and prove archives:") < shown.index("Explain a failure:") < shown.index("examples:")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chekc"], "there is no command 'chekc'; did you mean `check`?"),
        (["matrix", "htlm", "x"], "there is no command 'htlm'; did you mean `html`?"),
        (["xyzzy"], "there is no command 'xyzzy'; `--help` lists them"),
        (["doctor", "--ofline"], "unrecognized arguments: --ofline; did you mean `--offline`?"),
        (["engines", "list", "--indx=1"], "unrecognized arguments: --indx=1; did you mean `--index`?"),
        (["doctor", "now"], "unrecognized arguments: now"),
    ],
)
def test_a_wrong_name_is_an_error_with_the_nearest_right_one(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: {message}\n")


@pytest.mark.parametrize("command", ["check", "export", "export-llm"])
def test_levels_are_listed_where_they_are_arguments(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert ", ".join(TractCheckTolerance) in " ".join(capsys.readouterr().out.split())


def test_a_table_in_a_pipe_has_a_line_for_each_row_and_no_border(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("case", "engine"), [("test_a[1]", f"tract {RECENT}"), ("x" * 300, "two\nlines \x1b[31m")])
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["case", "engine"]
    assert first.split("  ")[0] == "test_a[1]"
    assert first.endswith(f"  tract {RECENT}")
    assert second == "x" * 300 + "  two lines \\x1b[31m"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "nets:make", "-o", "net.onnx"], "net.onnx: an archive ends in `.tar`, `.tgz`, `.tar.gz`"),
        (["export", "nets:make", "-o", "net.nnef.tgz", "--tract", "0.99"], "no release of tract matches '0.99'"),
        (["export-llm", ".", "-o", "out", "--tract", "0.99"], "no release of tract matches '0.99'"),
    ],
)
def test_arguments_of_an_export_are_checked_before_torch_is_imported(
    arguments: list[str], message: str, resolved_engine: Callable[[str], ResolvedEngine]
) -> None:
    resolved_engine("0.23")  # the cache then has the index's answer, which lists the releases
    code = (
        "import sys\nfrom pytest_t2n.cli.command import main\n"
        "status = main(sys.argv[1:])\nprint(status, 'torch' in sys.modules)"
    )
    typed = [sys.executable, "-c", code, *arguments, "--offline"]
    done = subprocess.run(typed, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "1 False\n"
    assert message in done.stderr


def test_doctor_prints_a_line_of_json_for_each_part(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["doctor", "--json", "--offline"])
    findings = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"t2n", "processor", "cache", "engine"} <= {finding["part"] for finding in findings}
    assert status == int(any(finding["state"] == "bad" for finding in findings))


@pytest.mark.parametrize(
    ("line", "completions"),
    [("t2n eng", {"engines"}), ("t2n export --to", {"--tolerance"}), ("t2n matrix me", {"merge"})],
)
def test_a_shell_completes_commands_and_options(line: str, completions: set[str], tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    more = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    environment = {**os.environ, **more, "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    subprocess.run([sys.executable, "-m", "pytest_t2n.cli"], env=environment, timeout=60, check=True)
    assert {word.strip() for word in answer.read_text("utf-8").split("\n") if word} == completions
