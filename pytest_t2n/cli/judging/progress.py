"""Progress of a run, with an estimate of the remaining time: a bar in a terminal, elsewhere a line at intervals."""

from __future__ import annotations

import time
from types import TracebackType

import rich.progress
from rich.console import Console

from pytest_t2n.cli.output import as_text

_EVERY = 30.0
"""Seconds between two lines without a terminal."""


class Progress:
    """Counts the cells of a run."""

    def __init__(self, console: Console, total: int) -> None:
        self._console, self._total, self._done = console, total, 0
        self._started = self._said = time.monotonic()
        self._bar = rich.progress.Progress(console=console, transient=True) if console.is_terminal else None
        self._task = self._bar.add_task("cells", total=total) if self._bar is not None else None

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self) -> None:
        """Count one cell."""
        self._done += 1
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task)
            return
        now = time.monotonic()
        if now - self._said >= _EVERY and self._done < self._total:
            self._said = now
            left = (now - self._started) / self._done * (self._total - self._done)
            self._console.print(as_text(f"{self._done} of {self._total} cells, about {_duration(left)} left"))


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
