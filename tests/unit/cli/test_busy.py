"""The line of a command that works: on a terminal, elsewhere now and then, and never in what it prints."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from pytest_t2n.cli.busy import busy

CODE = """
from pytest_t2n.cli.busy import busy
with busy("exporting [x]") as show:
    print("printed")
    show("checking")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_the_line_is_on_the_terminal_and_not_in_a_pipe() -> None:
    terminal, end = os.openpty()
    try:
        environment = {**os.environ, "TERM": "xterm"}
        done = subprocess.run(
            [sys.executable, "-c", CODE], stdout=subprocess.PIPE, stderr=end, env=environment, timeout=60, check=True
        )
        shown = os.read(terminal, 10_000)
    finally:
        os.close(terminal)
        os.close(end)
    assert done.stdout == b"printed\n"
    assert b"checking" in shown or b"exporting [x]" in shown


def test_without_a_terminal_there_is_no_line() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (b"printed\n", b"")


def test_a_long_command_tells_now_and_then_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with busy("running", seconds=10) as show:
        for number in range(1, 9):
            now[0] += 4
            show(f"{number} of 8")
    assert capsys.readouterr().err == "3 of 8\n6 of 8\n"
