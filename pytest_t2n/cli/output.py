"""Read records for the subcommands of `t2n`, and print names and messages unchanged, without markup."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from pytest_t2n.records.completeness import Completeness
from pytest_t2n.records.file import encode, read_records
from pytest_t2n.records.folder import MATRIX_FILE
from pytest_t2n.records.index import completeness_of, open_index
from pytest_t2n.records.schema import CellLine, Record, RecordError
from t2n_core.errors import T2NError
from t2n_core.text import clip, reason_of, visible

if TYPE_CHECKING:
    from pytest_t2n.report.matrix import Matrix

SHOWN = 200
"""Most lines of a table."""
_LONGEST = 2000
"""Most characters of a text in a table: a terminal folds long ones slowly."""


def load(options: argparse.Namespace, path: Path) -> list[Record]:
    """Return the records of a file, or of a directory with one.

    An incomplete file is reported on stderr, and makes the command fail unless `--allow-incomplete` is given:
    `options.incomplete` has the notices.

    Raises:
        T2NError: the file cannot be read.
    """
    try:
        records = read_records(path / MATRIX_FILE if path.is_dir() else path, warn)
    except (OSError, RecordError) as exc:
        raise T2NError(reason_of(exc)) from None
    tell(options, path, completeness_of(records))
    return records


def load_matrix(options: argparse.Namespace, path: Path) -> Matrix:
    """Return the matrix of a file, or of a directory with one, read on demand; see `load`.

    The file is open until `options.closing` ends. Raises T2NError.
    """
    from pytest_t2n.report.matrix import Matrix

    try:
        index = options.closing.enter_context(open_index(path, warn))
    except (OSError, RecordError) as exc:
        raise T2NError(reason_of(exc)) from None
    tell(options, path, index.completeness)
    return Matrix.of_index(index)


def tell(options: argparse.Namespace, path: Path, state: Completeness) -> None:
    """Report an incomplete file on stderr, and add it to `options.incomplete`."""
    if state.notice:
        warn(f"{path}: {state.notice}")
    if not state.is_complete:
        options.incomplete.append(state.notice)


def refuse_incomplete(options: argparse.Namespace) -> None:
    """Raise T2NError if a file was incomplete and the user did not allow it: nothing must be written from it."""
    if options.incomplete and not options.allow_incomplete:
        raise T2NError(f"{options.incomplete[0]}; --allow-incomplete accepts it")


def show_cells(cells: Iterable[CellLine], *, as_json: bool = False) -> int:
    """Print cells as a table, or as lines of JSON one by one; return how many there are."""
    count = 0
    rows = []
    for count, cell in enumerate(cells, 1):
        if as_json:
            print(json.dumps(json.loads(encode(cell)), separators=(",", ":")))
        elif count <= SHOWN:
            message = cell.error.message.split("\n", 1)[0] if cell.error else ""
            rows.append((cell.case, cell.engine, cell.status, cell.stage, cell.level or "", message))
    if not as_json:
        show_table(("case", "engine", "status", "stage", "level", "message"), rows)
        say(f"{count} cells" + (f", {SHOWN} shown; --json prints all" if count > SHOWN else ""))
    return count


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table that never cuts off a name, so that names of cases can be copied.

    A terminal gets a table of its width. A file or a pipe gets a line for each row, in columns without borders.
    """
    if sys.stdout.isatty():
        table = Table(*(Column(name, overflow="fold") for name in columns))
        for row in rows:
            table.add_row(*map(as_text, row))
        Console().print(table)
        return
    lines = [columns, *([visible(clip(cell, _LONGEST)).replace("\n", " ") for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def as_text(words: str) -> Text:
    """Return a text object for rich, which would read `[...]` in a string as markup."""
    return Text(visible(clip(words, _LONGEST)))


def say(words: str) -> None:
    """Print a line."""
    print(visible(words))


def warn(words: str) -> None:
    """Print a line to stderr."""
    print(visible(words), file=sys.stderr)
