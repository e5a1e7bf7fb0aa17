"""The page of a history: one file with the results, and a folder with the history of each case."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import jinja2

from pytest_t2n.report.history.parquet import database
from pytest_t2n.report.history.questions import Questions, Rate
from pytest_t2n.report.history.store import RunOfHistory, read_runs
from pytest_t2n.report.single_file import source_of, write_single_file
from t2n_core.errors import T2NError
from t2n_core.files import write_whole
from t2n_core.scratch import scratch_folder
from t2n_core.text import all_visible, visible

_SHOWN = 500
"""Most lines of a table."""
_IN_A_FILE = 5_000
"""Cells whose history is in one file."""
_MEMORY = "1GB"
"""Memory of the queries; the rest is on disk."""
_PLACES = 100.0
"""Width and height of a chart."""


def write_history(history: Path, directory: Path) -> list[str]:
    """Write `index.html` and the folder `cases`; return the problems of runs that are left out.

    Raises:
        T2NError: there are no runs, or a Parquet file cannot be read.
        OSError: the directory cannot be written.
    """
    runs, problems = read_runs(history)
    if not runs:
        raise T2NError(f"{history} has no runs; t2n history add adds one", hint="; ".join(problems[:3]))
    with scratch_folder() as folder, database(folder, _MEMORY) as base:
        questions = Questions(base, [path for _, path in runs])
        directory.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256("".join(run.id for run, _ in runs).encode()).hexdigest()[:12]
        parts = directory / f"cases-{digest}"
        firsts = _write_cases(questions, parts)
        _write_index(questions, [run for run, _ in runs], directory / "index.html", parts.name, firsts)
    for old in directory.glob("cases-????????????"):
        if old != parts and old.is_dir() and not old.is_symlink():
            shutil.rmtree(old, ignore_errors=True)
    return problems


def _write_cases(questions: Questions, folder: Path) -> list[str]:
    """Write the history of all cases to files, and return the first case of each."""
    firsts: list[str] = []
    block: dict[str, list[list[Any]]] = {}
    cells = 0

    def write() -> None:
        text = json.dumps(block, separators=(",", ":"))
        write_whole(folder / f"{len(firsts)}.js", f"t2nCases({len(firsts)},{text});\n")
        firsts.append(next(iter(block)))

    for case, lines in groupby(questions.cases(), key=lambda line: line[0]):
        block[visible(case)] = history = [all_visible(list(line[1:])) for line in lines]
        cells += len(history)
        if cells >= _IN_A_FILE:
            write()
            block, cells = {}, 0
    if block:
        write()
    return firsts


def _write_index(
    questions: Questions, runs: Sequence[RunOfHistory], path: Path, parts: str, firsts: Sequence[str]
) -> None:
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader("pytest_t2n.report.history"), jinja2.PackageLoader("pytest_t2n.report")]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = visible
    style = source_of(environment, "matrix.css") + source_of(environment, "history.css")
    count, failures = questions.failures()
    flakes = questions.flakes()
    engines: dict[int, dict[str, dict[str, int]]] = {}
    for run, engine, status, cells in questions.engines():
        engines.setdefault(run, {}).setdefault(engine, {})[status] = cells
    data = {
        "runs": [{"id": run.id, "started": run.started, "engines": engines.get(n, {}), "versions": run.versions,
                  "notice": run.notice, "source": run.source} for n, run in enumerate(runs)],
        "folder": parts,
        "firsts": firsts,
    }  # fmt: skip
    write_single_file(
        environment,
        "history.html.j2",
        path,
        style=style,
        script=source_of(environment, "history.js"),
        runs=runs,
        lines=list(_lines(questions.rates(), len(runs))),
        failing=count,
        failures=list(islice(failures, _SHOWN)),
        flakes=flakes[:_SHOWN],
        flaky=len(flakes),
        data=base64.b64encode(json.dumps(all_visible(data)).encode()).decode(),
    )


def _lines(rates: Sequence[Rate], runs: int) -> Iterator[tuple[str, str, Rate, Rate]]:
    """Yield each line of releases with the points of its chart, its first and its last rate."""
    step = _PLACES / max(1, runs - 1)
    for line, group in groupby(rates, key=lambda rate: rate.line):
        line_rates = list(group)
        points = (f"{rate.run * step:.2f},{_PLACES - _PLACES * rate.passed / rate.ran:.2f}" for rate in line_rates)
        yield line, " ".join(points), line_rates[0], line_rates[-1]
