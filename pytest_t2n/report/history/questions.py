"""Queries over all runs of a history, by DuckDB on their Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_t2n.report.history.parquet import COLUMNS
from t2n_core.errors import T2NError

if TYPE_CHECKING:
    import duckdb

_RAN = "status NOT IN ('skip', 'not_run')"
_GOOD = "(status = 'pass' OR (status = 'weak' AND expected <> ''))"
_LINE = r"""CASE WHEN target = 'tract' AND regexp_matches(version, '^\d+\.\d+')
THEN target || ' ' || regexp_extract(version, '^\d+\.\d+') ELSE engine END"""


@dataclass(frozen=True, slots=True)
class Rate:
    """The cells of a line of releases in a run."""

    line: str
    run: int
    passed: int
    ran: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A cell that fails in the last run of its engine."""

    case: str
    engine: str
    status: str
    stage: str
    expected: str
    since: int
    """The run since which it fails."""
    before: int | None
    """The last run in which it passed; None if it never did."""
    message: str


@dataclass(frozen=True, slots=True)
class Flake:
    """A cell with several results for the same archive and the same engine, on one platform."""

    case: str
    engine: str
    statuses: tuple[str, ...]
    runs: tuple[int, ...]


class Questions:
    """The cells of all runs; runs are numbered by their start."""

    def __init__(self, base: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> None:
        """Inspect the files. Raises T2NError for one with other columns."""
        self._base = base
        for path in files:
            kinds = {name: kind for name, kind, *_ in base.read_parquet(str(path)).limit(0).description}
            missing = [name for name in COLUMNS if name not in kinds]
            if missing:
                raise T2NError(f"{path} has no column {', '.join(missing)}")
        names = ", ".join(f'"{name}"' for name in COLUMNS)
        base.execute("CREATE TABLE runs (path VARCHAR, run INTEGER)")
        base.executemany("INSERT INTO runs VALUES (?, ?)", [(str(path), run) for run, path in enumerate(files)])
        base.read_parquet([str(path) for path in files], filename=True, union_by_name=True).create_view("files")
        base.execute(f"CREATE VIEW cells AS SELECT run, {names} FROM files JOIN runs ON filename = path")

    def rates(self) -> list[Rate]:
        """Return the pass rates by line of releases and run."""
        query = f"""SELECT {_LINE} AS line, run, count(*) FILTER (status = 'pass'), count(*)
        FROM cells WHERE {_RAN} GROUP BY ALL ORDER BY line, run"""
        return [Rate(*row) for row in self._rows(query)]

    def failures(self) -> tuple[int, Iterator[Failure]]:
        """Return the number of cells that fail in the last run of their engines, and these, newest failure first."""
        self._base.execute(f"""CREATE OR REPLACE TABLE last AS
        WITH newest AS (SELECT engine, max(run) AS run FROM cells GROUP BY engine),
        good AS (SELECT "case", engine, max(run) AS run FROM cells WHERE {_RAN} AND {_GOOD} GROUP BY ALL)
        SELECT c."case", c.engine, c.status, c.stage, c.expected, c.message, good.run AS before
        FROM cells c JOIN newest USING (engine, run) LEFT JOIN good ON good."case" = c."case" AND good.engine = c.engine
        WHERE {_RAN} AND NOT {_GOOD}""")
        query = f"""SELECT * FROM (
        SELECT l."case", l.engine, l.status, l.stage, l.expected, min(c.run) AS since, l.before, l.message
        FROM last l JOIN cells c ON c."case" = l."case" AND c.engine = l.engine AND c.run > coalesce(l.before, -1)
        WHERE c.{_RAN} GROUP BY ALL) ORDER BY since DESC, expected <> '', "case", engine"""
        count = int(self._base.execute("SELECT count(*) FROM last").fetchall()[0][0])
        return count, (Failure(*row) for row in self._rows(query))

    def flakes(self) -> list[Flake]:
        """Return the cells with several results for the same archive, engine and platform."""
        group = '"case", engine, platform, archive_sha256'
        from_clause = f"FROM cells WHERE {_RAN} AND archive_sha256 <> '' AND NOT reused"
        query = f"""WITH changing AS (SELECT {group} {from_clause} GROUP BY ALL HAVING min(status) <> max(status))
        SELECT "case", engine, list(status ORDER BY run), list(run ORDER BY run)
        FROM (SELECT * {from_clause}) SEMI JOIN changing USING ({group}) GROUP BY {group} ORDER BY "case", engine"""
        return [Flake(case, engine, tuple(words), tuple(runs)) for case, engine, words, runs in self._rows(query)]

    def engines(self) -> list[tuple[int, str, str, int]]:
        """Return the number of cells by run, engine and status."""
        return list(self._rows("SELECT run, engine, status, count(*) FROM cells GROUP BY ALL ORDER BY ALL"))

    def cases(self) -> Iterator[tuple[str, str, list[int], list[str], list[str]]]:
        """Yield case and engine of each cell, with its runs, statuses and levels, by case."""
        # sorted, and grouped here: DuckDB sorts on disk, but collects lists in memory
        query = """SELECT "case", engine, run, status, coalesce(level, '') FROM cells ORDER BY "case", engine, run"""
        for (case, engine), rows in groupby(self._rows(query), key=lambda row: (row[0], row[1])):
            runs, statuses, levels = zip(*(row[2:] for row in rows), strict=True)
            yield case, engine, list(runs), list(statuses), list(levels)

    def _rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        cursor = self._base.cursor().execute(query)
        while block := cursor.fetchmany(2_000):
            yield from block
