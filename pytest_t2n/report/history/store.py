"""The folder of a history: for each run a Parquet file with its cells, and a JSON file with its description."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pytest_t2n.records.schema import Time
from pytest_t2n.report.columns import ColumnFold
from pytest_t2n.report.history.parquet import write_parquet
from pytest_t2n.report.matrix import Matrix
from t2n_core.errors import T2NError
from t2n_core.files import file_sha256, write_whole
from t2n_core.foreign import ForeignFileError, decode_json, read_file

_RUNS = "runs"
_MOST = 4 << 20
"""Most bytes of the description of a run."""
_SCHEMA = 1


class RunOfHistory(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run of a history."""

    schema: int
    id: str
    """The start of the run with a digest of its records; the name of its files."""
    started: Time
    cells: int
    passed: int
    surprises: int
    engines: list[str] = []
    """Titles of the columns."""
    versions: dict[str, str] = {}
    notice: str = ""
    """The reason why the run is incomplete, if it is."""
    source: str = ""
    """The user's text about the run, such as a commit or the address of its report."""


def add_run(records: Path, matrix: Matrix, history: Path, source: str = "") -> tuple[RunOfHistory, bool]:
    """Add the matrix of a file of records; return the run, and whether it is new. Several may add at once.

    Raises T2NError, OSError.
    """
    if not matrix.runs:
        raise T2NError(f"{records} has no run line, so that its time is unknown")
    first = min(matrix.runs, key=lambda run: run.started)
    stamp = "".join(letter for letter in first.started[:19] if letter.isdigit())
    name = f"{stamp}-{file_sha256(records)[:12]}"
    description = history / _RUNS / f"{name}.json"
    if description.exists():
        return _read(description), False
    totals = ColumnFold(matrix)
    matrix.fold(totals)
    run = RunOfHistory(
        _SCHEMA,
        name,
        first.started,
        totals.statuses.total(),
        totals.statuses["pass"],
        totals.surprises,
        [column.engine.title for column in totals.columns() if column.total],
        first.versions,
        matrix.completeness.notice,
        source,
    )
    write_parquet(matrix, description.with_suffix(".parquet"))
    write_whole(description, msgspec.json.encode(run))  # after the cells: a described run is complete
    return run, True


def read_runs(history: Path) -> tuple[list[tuple[RunOfHistory, Path]], list[str]]:
    """Return the runs by start, each with its Parquet file, and the problems of the runs left out."""
    runs: list[tuple[RunOfHistory, Path]] = []
    problems: list[str] = []
    for path in sorted((history / _RUNS).glob("*.json")):
        try:
            run = _read(path)
        except (T2NError, OSError) as exc:
            problems.append(str(exc))
            continue
        cells = path.with_suffix(".parquet")
        if cells.is_file():
            runs.append((run, cells))
        else:
            problems.append(f"{cells} is missing")
    return sorted(runs, key=lambda pair: (pair[0].started, pair[0].id)), problems


def _read(path: Path) -> RunOfHistory:
    try:
        run = decode_json(read_file(path, _MOST), RunOfHistory, str(path))
    except ForeignFileError as exc:
        raise T2NError(str(exc)) from None
    if run.schema > _SCHEMA or run.id != path.stem:
        raise T2NError(f"{path} is the description of another run, or of a newer version")
    return run
