"""Progress without a terminal: a line now and then, with an estimate."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from pytest_t2n.cli.judging.progress import Progress


def test_a_line_now_and_then_says_how_long_it_will_take(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    with Progress(Console(file=stream), 100) as progress:
        for _ in range(100):
            now[0] += 1.5
            progress.advance()
    assert stream.getvalue().splitlines() == [
        "20 of 100 cells, about 2 min left",
        "40 of 100 cells, about 2 min left",
        "60 of 100 cells, about 60 s left",
        "80 of 100 cells, about 30 s left",
    ]
