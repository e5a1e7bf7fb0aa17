"""Reading records for the subcommands of `t2n`, and printing: names and messages arrive as they are, without markup."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from pytest_t2n.records.completeness import completeness_of
from pytest_t2n.records.file import MATRIX_FILE, encode, read_records
from pytest_t2n.records.schema import CellLine, Record, RecordError
from t2n_core.errors import T2NError
from t2n_core.text import visible

SHOWN = 200
"""Most lines of a table."""
_PIPED = 240
"""Columns, if the output is no terminal."""


def load(options: argparse.Namespace, path: Path) -> list[Record]:
    """Return the records of a file, or of a directory with one.

    What is not whole about it is printed to stderr, and makes the command fail unless `--allow-incomplete` is given:
    `options.incomplete` has the notices.

    Raises:
        T2NError: the file cannot be read.
    """
    try:
        records = read_records(path / MATRIX_FILE if path.is_dir() else path, _warn)
    except (OSError, RecordError) as exc:
        raise T2NError(str(exc)) from None
    state = completeness_of(records)
    if state.notice:
        _warn(f"{path}: {state.notice}")
    if not state.whole:
        options.incomplete.append(state.notice)
    return records


def refuse_incomplete(options: argparse.Namespace) -> None:
    """Raise T2NError if a file was not whole, and the user did not mean it: nothing must be written from it."""
    if options.incomplete and not options.allow_incomplete:
        raise T2NError(f"{options.incomplete[0]}; --allow-incomplete takes what is there")


def show_cells(cells: Sequence[CellLine], *, as_json: bool = False) -> None:
    """Print cells as a table, or as lines of JSON."""
    if as_json:
        for cell in cells:
            print(encode(cell))
        return
    rows = (
        (
            cell.case,
            cell.engine,
            cell.status,
            cell.stage,
            cell.level or "",
            cell.error.message.split("\n", 1)[0] if cell.error else "",
        )
        for cell in cells[:SHOWN]
    )
    show_table(("case", "engine", "status", "stage", "level", "message"), rows)
    say(f"{len(cells)} cells" + (f", {SHOWN} shown; --json prints all" if len(cells) > SHOWN else ""))


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table that never cuts off a name, so that names of cases can be copied."""
    table = Table(*(Column(name, overflow="fold") for name in columns))
    for row in rows:
        table.add_row(*map(as_text, row))
    # A console as wide as the terminal; a file or a pipe takes wide lines.
    console = Console() if sys.stdout.isatty() else Console(width=_PIPED)
    console.print(table)


def as_text(words: str) -> Text:
    """Return words for rich, which would read `[...]` in a string as markup."""
    return Text(visible(words))


def say(words: str) -> None:
    """Print a line."""
    print(visible(words))


def _warn(words: str) -> None:
    print(visible(words), file=sys.stderr)


__all__ = ["SHOWN", "as_text", "load", "refuse_incomplete", "say", "show_cells", "show_table"]
