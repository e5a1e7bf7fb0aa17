"""`t2n matrix merge|diff|html|md|badge|annotate|csv|ctrf|schema|query|accept|export|run` works on files of records."""

from __future__ import annotations

import argparse
import fnmatch
import json
import shutil
import sys
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from pytest_t2n.cli.busy import busy
from pytest_t2n.cli.output import (
    SHOWN,
    load,
    load_matrix,
    refuse_incomplete,
    say,
    show_cells,
    show_table,
    tell,
    warn,
)
from pytest_t2n.records.folder import MATRIX_FILE, check_folder, lock_folder
from pytest_t2n.records.nodeids import OWN_EXPORTER
from pytest_t2n.records.schema import CellLine, RecordError, RunLine, cells_of
from pytest_t2n.report.matrix import Matrix, is_surprise
from t2n_core.errors import T2NError
from t2n_core.level import TractCheckTolerance
from t2n_core.parity.stage import Stage, Status
from t2n_core.text import reason_of

_MOST_COLUMNS = 500
_FILE = "a file instead of the standard output"
_ALLOW = "do not fail for an incomplete file: its session was killed, or it has no plan"


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of this family."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: object, help: str, *, file: bool = True) -> argparse.ArgumentParser:
        subparser = commands.add_parser(name, help=help, description=help)
        if file:
            subparser.add_argument("file", type=Path, help="matrix.jsonl, or a directory with one")
        if name not in ("schema", "run"):
            subparser.add_argument("--allow-incomplete", action="store_true", help=_ALLOW)
        subparser.set_defaults(run=_with_errors(run))
        return subparser

    merging = command("merge", _merge, "merge shards, or runs of other engines", file=False)
    merging.add_argument("files", type=Path, nargs="+", help="matrix.jsonl of each, or directories")
    merging.add_argument("-o", "--output", type=Path, required=True, help="a .jsonl, or a directory for a report")
    merging.add_argument(
        "--allow-sources", action="store_true", help="runs of different states of the project's Python files"
    )
    merging.add_argument("--allow-rerun", action="store_true", help="a cell in several files: the last file counts")

    diffing = command("diff", _diff, "what changed between two runs, or two engines of one run")
    diffing.add_argument("other", type=Path, nargs="?", help="the newer matrix.jsonl")
    diffing.add_argument("--engines", nargs=2, metavar=("BEFORE", "AFTER"), help="as 'tract 0.21.19' 'tract 0.22.4'")
    diffing.add_argument("--json", action="store_true", help="print JSON lines")
    for fact, text in (
        ("sources", "runs of different states of the project's Python files"),
        ("versions", "runs of different versions of Python and libraries"),
        ("platforms", "runs on different platforms"),
    ):
        diffing.add_argument(f"--allow-{fact}", action="store_true", help=text)

    for name, text in (
        ("html", "write the report: index.html and the files beside it"),
        ("md", "print the Markdown summary"),
        ("csv", "print one line of CSV per cell"),
        ("ctrf", "print the Common Test Report Format"),
        ("badge", "write a badge per engine version"),
        ("annotate", "print unexpected failures as annotations of a pull request, at their torch lines"),
    ):
        subparser = command(name, _RENDER[name], text)
        if name in ("html", "md"):
            subparser.add_argument(
                "--baseline", type=Path, help="matrix.jsonl of an earlier run: what changed stands first"
            )
        if name == "annotate":
            subparser.add_argument(
                "--root", type=Path, default=Path(), help="the checkout; the current folder if not given"
            )
        directory = name in ("html", "badge")
        subparser.add_argument(
            "-o", "--output", type=Path, required=directory, help="directory" if directory else _FILE
        )
    schema = command("schema", _schema, "print the JSON Schema of a line of matrix.jsonl", file=False)
    schema.add_argument("-o", "--output", type=Path, help=_FILE)

    querying = command("query", _query, "list the cells that fit")
    querying.add_argument("--case", metavar="GLOB", help="of the node id without the engine")
    querying.add_argument("--engine", metavar="GLOB", help="as 'tract 0.21*'")
    querying.add_argument("--exporter", metavar="NAMES", help="of these exporters, with commas; t2n is this one")
    for field in ("status", "stage", "level", "fingerprint"):
        querying.add_argument(f"--{field}", metavar="WORD", help="or several, with commas")
    querying.add_argument("--surprises", action="store_true", help="neither passed nor expected to fail")
    querying.add_argument("--differs", action="store_true", help="of cases whose status differs between engines")
    querying.add_argument("--json", action="store_true", help="print JSON lines")

    accepting = command("accept", _accept, "rewrite a file of expectations to match the results of this run")
    accepting.add_argument("--expect", type=Path, action="append", required=True, help="may be given several times")

    exporting = command("export", _export, "write the cells as one file for other tools")
    exporting.add_argument("--parquet", type=Path, required=True, metavar="FILE", help="needs pytest-t2n[history]")

    from pytest_t2n.cli.run import add_run

    add_run(command("run", None, "judge a bundle in engines; needs no torch", file=False))


def _with_errors(run: object) -> object:
    """Return `run` with RecordError and OSError raised as T2NError, and status 1 for incomplete files."""
    if not callable(run):
        return run

    def wrapped(options: argparse.Namespace) -> int:
        options.incomplete = []
        with ExitStack() as options.closing:
            try:
                status = int(run(options))
            except (OSError, RecordError) as exc:
                raise T2NError(reason_of(exc)) from None
        return status or int(bool(options.incomplete) and not options.allow_incomplete)

    return wrapped


def _merge(options: argparse.Namespace) -> int:
    from pytest_t2n.records.merge import merge_files

    def merge(output: Path) -> int:
        return merge_files(
            options.files,
            output,
            allow_rerun=options.allow_rerun,
            allow_incomplete=options.allow_incomplete,
            allow_sources=options.allow_sources,
            torn=warn,
            tell=lambda path, state: tell(options, path, state),
        )

    if options.output.suffix == ".jsonl":
        count = merge(options.output)
    else:
        from pytest_t2n.records.index import open_index
        from pytest_t2n.report.matrix import Matrix
        from pytest_t2n.report.write import write_matrix

        is_new = not options.output.exists()
        try:
            with lock_folder(options.output), busy("writing the report"):
                check_folder(options.output)
                count = merge(options.output / MATRIX_FILE)
                with open_index(options.output) as index:
                    write_matrix(_for_page(Matrix.of_index(index)), options.output)
        except BaseException:
            if is_new:  # files that cannot be merged leave no output
                shutil.rmtree(options.output, ignore_errors=True)
            raise
    say(f"{count} cells of {len(options.files)} files in {options.output}")
    return 0


def _diff(options: argparse.Namespace) -> int:
    from pytest_t2n.records.changes import ChangeKind, ChangeList, each_change, each_column_change, run_differences

    matrix = load_matrix(options, options.file)
    if (options.other is None) == (options.engines is None):
        raise T2NError("name a second file, or two engines with --engines BEFORE AFTER")
    if options.engines:
        engines = {cell.engine for cell in matrix.cells}
        for engine in options.engines:
            if engine not in engines:
                raise T2NError(f"no cell of {engine!r} in {options.file}; it has {', '.join(sorted(engines))}")
        all_changes = each_column_change(matrix.by_case, *options.engines)
    else:
        other = load_matrix(options, options.other)
        differences = run_differences(matrix.runs, other.runs)
        refused = {fact: text for fact, text in differences.items() if not getattr(options, f"allow_{fact}")}
        if refused:
            allowing = " ".join(f"--allow-{fact}" for fact in refused)
            hint = f"a change may come from that alone; to compare them all the same: {allowing}"
            raise T2NError(f"these runs are of {'; '.join(refused.values())}", hint=hint)
        for text in differences.values():
            warn(f"these runs are of {text}")
        all_changes = each_change(matrix.by_case, other.by_case)
    with ChangeList(all_changes) as changes:
        if options.json:
            for change in changes:
                print(json.dumps(change))
        else:
            for notice in options.incomplete:
                say(notice)
            names = ("kind", "case", "column", "before", "after")
            shown = ([change[name] for name in names] for change in islice(changes, SHOWN))
            show_table(("change", "case", "engine", "before", "after"), shown)
        worse = sum(changes.counts[kind] for kind in (ChangeKind.REGRESSION, ChangeKind.LOOSER, ChangeKind.GONE))
        print(f"{len(changes)} changes, {worse} for the worse", file=sys.stderr)
    return 1 if worse else 0


def _html(options: argparse.Namespace) -> int:
    from pytest_t2n.report.write import write_matrix

    check_folder(options.output)
    matrix = _for_page(load_matrix(options, options.file))
    baseline = load_matrix(options, options.baseline) if options.baseline else None
    with busy("writing the report"):
        write_matrix(matrix, options.output, baseline)
    say(f"report: {options.output / 'index.html'}")
    return 0


def _for_page(matrix: Matrix) -> Matrix:
    """Return the matrix. Raises T2NError if it has more engines than a page can show."""
    if len(matrix.columns) > _MOST_COLUMNS:
        raise T2NError(f"{len(matrix.columns)} engines are too many for a page, which shows {_MOST_COLUMNS}")
    return matrix


def _write(options: argparse.Namespace, text: str) -> None:
    if options.output is None:
        print(text, end="")
    else:
        options.output.write_text(text, encoding="utf-8")


def _md(options: argparse.Namespace) -> int:
    from pytest_t2n.report.markdown import summary_markdown

    before = load_matrix(options, options.baseline) if options.baseline else None
    _write(options, summary_markdown(load_matrix(options, options.file), before))
    return 0


def _csv(options: argparse.Namespace) -> int:
    from pytest_t2n.report.exports import matrix_csv

    _write(options, matrix_csv(load_matrix(options, options.file)))
    return 0


def _ctrf(options: argparse.Namespace) -> int:
    from pytest_t2n.report.exports import matrix_ctrf

    _write(options, matrix_ctrf(load_matrix(options, options.file)))
    return 0


def _annotate(options: argparse.Namespace) -> int:
    from pytest_t2n.report.annotations import annotation_lines

    lines = annotation_lines(load_matrix(options, options.file), options.root)
    _write(options, "".join(f"{line}\n" for line in lines))
    return 0


def _schema(options: argparse.Namespace) -> int:
    from pytest_t2n.report.exports import records_schema

    _write(options, records_schema())
    return 0


def _badge(options: argparse.Namespace) -> int:
    from pytest_t2n.report.badges import badges

    options.output.mkdir(parents=True, exist_ok=True)
    badge_texts = badges(load_matrix(options, options.file))
    for name, text in badge_texts.items():
        (options.output / name).write_text(text, encoding="utf-8")
    say(f"{len(badge_texts)} badges in {options.output}")
    return 0


_RENDER = {"html": _html, "md": _md, "csv": _csv, "ctrf": _ctrf, "badge": _badge, "annotate": _annotate}


def _query(options: argparse.Namespace) -> int:
    for name, choices in (("status", Status), ("stage", Stage), ("level", TractCheckTolerance)):
        for word in (getattr(options, name) or "").split(","):
            if word and word not in [choice.value for choice in choices]:
                raise T2NError(f"--{name}={word}: there are {', '.join(choice.value for choice in choices)}")
    matrix = load_matrix(options, options.file)
    rows = (row for row in matrix.rows if row.differs or not options.differs)
    matching = (cell for row in rows for cell in row.present if _fits(cell, options))
    if not options.json:
        for notice in options.incomplete:
            say(notice)
    return 0 if show_cells(matching, as_json=options.json) else 1


def _fits(cell: CellLine, options: argparse.Namespace) -> bool:
    from pytest_t2n.expect.entries import glob_fits
    from pytest_t2n.records.nodeids import names_of

    if options.case and not any(glob_fits(options.case, name) for name in names_of(cell.case)):
        return False
    if options.engine and not fnmatch.fnmatchcase(cell.engine, options.engine):
        return False
    if options.exporter and (cell.exporter or OWN_EXPORTER) not in options.exporter.split(","):
        return False
    words = {
        "status": cell.status,
        "stage": cell.stage,
        "level": cell.level or "",
        "fingerprint": cell.error.fingerprint if cell.error else "",
    }
    for name, word in words.items():
        option = getattr(options, name)
        if option and word not in option.split(","):
            return False
    return not options.surprises or is_surprise(cell)


def _export(options: argparse.Namespace) -> int:
    from pytest_t2n.report.history.parquet import write_parquet

    count = write_parquet(load_matrix(options, options.file), options.parquet)
    say(f"{count} cells in {options.parquet}")
    return 0


def _accept(options: argparse.Namespace) -> int:
    from pytest_t2n.expect.accept import accept_results
    from pytest_t2n.expect.entries import ExpectationError
    from pytest_t2n.records.cell import SelectedEngine

    records = load(options, options.file)
    refuse_incomplete(options)
    lines = [engine for run in records if isinstance(run, RunLine) for engine in run.engines]
    engines = [SelectedEngine(line.target, line.version, line.label, exporter=line.exporter) for line in lines]
    try:
        notes = accept_results(options.expect, Path.cwd(), cells_of(records), engines)
    except ExpectationError as exc:
        raise T2NError(str(exc)) from None
    for note in notes:
        say(note.removeprefix("--t2n-accept: "))
    return 0
