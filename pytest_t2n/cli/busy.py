"""A line on the terminal while a command works, and nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

from pytest_t2n.cli.output import as_text


@contextmanager
def busy(words: str) -> Iterator[Callable[[str], None]]:
    """Show a line on stderr, if that is a terminal, while a block runs; the yielded function changes its text."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda words: None
        return
    spinner = Spinner("dots", as_text(words))
    # what is printed appears above the line; a pipe must get it unchanged
    with Live(spinner, console=console, transient=True, redirect_stdout=sys.stdout.isatty()):
        yield lambda words: spinner.update(text=as_text(words))
