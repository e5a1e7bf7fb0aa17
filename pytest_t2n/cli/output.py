"""Reading records for the subcommands of `t2n`, and printing cells."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from pytest_t2n.records.file import MATRIX_FILE, encode, read_records
from pytest_t2n.records.schema import CellLine, Record, RecordError
from t2n_core.errors import T2NError

SHOWN = 200
"""Most lines of a table."""
_PIPED = 240
"""Columns, if the output is no terminal."""


def load(path: Path) -> list[Record]:
    """Return the records of a file, or of a directory with one. Raises T2NError."""
    try:
        return read_records(path / MATRIX_FILE if path.is_dir() else path)
    except (OSError, RecordError) as exc:
        raise T2NError(str(exc)) from None


def show_cells(cells: Sequence[CellLine], *, as_json: bool = False) -> None:
    """Print cells as a table, or as lines of JSON."""
    if as_json:
        for cell in cells:
            print(encode(cell))
        return
    table = folding_table("case", "engine", "status", "stage", "level", "message")
    for cell in cells[:SHOWN]:
        message = cell.error.message.split("\n", 1)[0] if cell.error else ""
        table.add_row(cell.case, cell.engine, cell.status, cell.stage, cell.level or "", message)
    console = wide_console()
    console.print(table)
    more = f", {SHOWN} shown; --json prints all" if len(cells) > SHOWN else ""
    console.print(f"{len(cells)} cells{more}")


def folding_table(*columns: str) -> Table:
    """Return a table that never cuts off a name, so that names of cases can be copied."""
    return Table(*(Column(name, overflow="fold") for name in columns))


def wide_console() -> Console:
    """Return a console as wide as the terminal; a file or a pipe takes wide lines."""
    return Console() if sys.stdout.isatty() else Console(width=_PIPED)


__all__ = ["SHOWN", "folding_table", "load", "show_cells", "wide_console"]
