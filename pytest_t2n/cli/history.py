"""`t2n history add|html` stores runs as Parquet, and shows the results of cases over time; needs DuckDB."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

from pytest_t2n.cli.busy import busy
from pytest_t2n.cli.output import load_matrix, refuse_incomplete, say, warn
from pytest_t2n.records.folder import MATRIX_FILE, check_history_folder
from pytest_t2n.records.schema import RecordError
from t2n_core.errors import T2NError
from t2n_core.text import reason_of


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of this family."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    adding = commands.add_parser("add", help="add a run to a history", description="Add a run to a history.")
    adding.add_argument("file", type=Path, help="matrix.jsonl, or a directory with one")
    adding.add_argument("--to", type=Path, required=True, metavar="HISTORY", help="directory of the history")
    adding.add_argument("--source", default="", metavar="TEXT", help="what the run was of: a commit, an address")
    adding.add_argument("--allow-incomplete", action="store_true", help="also add an incomplete run")
    adding.set_defaults(run=_add)
    showing = commands.add_parser(
        "html", help="write the page of a history", description="Write the page of a history: a static site."
    )
    showing.add_argument("history", type=Path, metavar="HISTORY")
    showing.add_argument("-o", "--output", type=Path, required=True, help="directory")
    showing.set_defaults(run=_html)


def _add(options: argparse.Namespace) -> int:
    from pytest_t2n.report.history.store import add_run

    options.incomplete = []
    path = options.file / MATRIX_FILE if options.file.is_dir() else options.file
    with ExitStack() as options.closing:
        try:
            matrix = load_matrix(options, path)
            refuse_incomplete(options)
            run, is_new = add_run(path, matrix, options.to, options.source)
        except (OSError, RecordError) as exc:
            raise T2NError(reason_of(exc)) from None
    say(f"{run.id}: {run.cells} cells" + ("" if is_new else ", in the history already"))
    return 0


def _html(options: argparse.Namespace) -> int:
    from pytest_t2n.report.history.page import write_history

    try:
        check_history_folder(options.output)
        with busy("writing the history"):
            problems = write_history(options.history, options.output)
    except (OSError, RecordError) as exc:
        raise T2NError(reason_of(exc)) from None
    for problem in problems:
        warn(f"left out: {problem}")
    say(f"history: {options.output / 'index.html'}")
    return 1 if problems else 0
