"""A line on the terminal while a command works; elsewhere nothing, or a line now and then."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

from pytest_t2n.cli.output import as_text, warn


@contextmanager
def busy(words: str, *, seconds: float = math.inf) -> Iterator[Callable[[str], None]]:
    """Show a line on stderr, if that is a terminal, while a block runs; the yielded function changes its text.

    Elsewhere it prints a text as a line if the last one, or the start, is `seconds` ago.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        last = time.monotonic()

        def show(words: str) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= seconds:
                last = now
                warn(words)

        yield show
        return
    spinner = Spinner("dots", as_text(words))
    # what is printed appears above the line; a pipe must get it unchanged
    with Live(spinner, console=console, transient=True, redirect_stdout=sys.stdout.isatty()):
        yield lambda words: spinner.update(text=as_text(words))
