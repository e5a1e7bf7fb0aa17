"""`t2n convert model.onnx -o model.nnef.tgz` writes an ONNX model as an NNEF archive, and proves it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from pytest_t2n.cli.arrays import read_sets
from pytest_t2n.cli.busy import busy
from pytest_t2n.cli.engine_choice import add_engine_options, engines_closed, engines_of
from pytest_t2n.cli.output import show_table
from pytest_t2n.cli.parser import LEVEL_HELP, SIZE_HELP, size_argument
from pytest_t2n.config.engines import runner_of
from t2n_core.check.file import check_file, file_request, open_checked
from t2n_core.errors import InputError
from t2n_core.level import DEFAULT_LEVEL, TractCheckTolerance
from t2n_core.nnef.reading.file_kind import is_onnx
from t2n_core.parity.judging.judgement import Judgement

if TYPE_CHECKING:
    from t2n_core.parity.outcome import Outcome


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="an ONNX model")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the archive")
    parser.add_argument(
        "--inputs",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="arrays by the names of inputs, or a folder of input_N.pb; random ones if missing",
    )
    parser.add_argument("--tolerance", default=str(DEFAULT_LEVEL), metavar="LEVEL", help=LEVEL_HELP)
    parser.add_argument("--size", action="append", default=[], type=size_argument, metavar="NAME=N", help=SIZE_HELP)
    add_engine_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Return 1 unless the archive, which the oldest of the engines writes, passes in all of them. Raises T2NError."""
    from t2n_core.engine.tract.engine import TractEngine
    from t2n_core.nnef.archive import check_archive_name
    from t2n_core.onnx_file.conversion import check_archive, convert

    if options.model.exists() and not is_onnx(options.model):
        raise InputError(f"{options.model} is not an ONNX model")
    check_archive_name(options.output)
    file = open_checked(options.model, dict(options.size))
    criteria = Judgement(TractCheckTolerance.parse(options.tolerance))
    first, *others = engines_of(options, Console(stderr=True))
    runner = runner_of(first)
    if not isinstance(runner, TractEngine):
        raise InputError("only wheels of tract write archives", hint="name a release with --tract")
    rows: list[tuple[str, str, Outcome]] = []
    with engines_closed(), busy(f"converting {options.model}"):
        inputs, _ = read_sets(file, options.inputs)
        request = file_request(file, inputs, [], first.target, criteria, options.timeout)
        model = check_file(file, runner, first.target, request)
        rows.append((first.title, options.model.name, model))
        done = convert(runner, request, model, options.output)
        if done.archive is not None:
            rows.append((first.title, options.output.name, done.archive))
        if done.archive is not None and done.archive.passed:
            for engine in others:
                other = runner_of(engine)
                rows.append((engine.title, options.output.name, check_archive(other, request, options.output)))
    _show(rows)
    return 0 if len(rows) > 1 and all(outcome.passed for _, _, outcome in rows) else 1


def _show(rows: list[tuple[str, str, Outcome]]) -> None:
    """Print a line for each file and engine, with the seconds of loading and of all samples, and the failures."""
    head = ("engine", "file", "status", "level", "max abs", "load", "run")
    lines = []
    for title, name, outcome in rows:
        worst = max((output.max_abs for output in outcome.outputs), default=None)
        level = "" if outcome.level is None else outcome.level.value
        load = outcome.times.get("load", 0.0) + outcome.times.get("optimise", 0.0)
        seconds = [f"{time:.3f} s" for time in (load, outcome.times.get("run", 0.0))]
        lines.append((title, name, outcome.status.value, level, "" if worst is None else f"{worst:.3g}", *seconds))
    show_table(head, lines)
    for _, _, outcome in rows:
        if not outcome.passed:
            print(outcome.describe())
