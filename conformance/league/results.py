"""Results of the league, read from the records of its suites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from conformance.lab.command import say
from conformance.lab.rows import read_rows
from pytest_t2n.config.engines import ONNXRUNTIME
from pytest_t2n.records.file import read_records
from pytest_t2n.records.folder import MATRIX_FILE
from pytest_t2n.records.index import completeness_of
from pytest_t2n.records.nodeids import OWN_EXPORTER
from pytest_t2n.records.schema import CellLine, EngineLine, RunLine, cells_of
from t2n_core.exporters.archive import PROFILES
from t2n_core.parity.stage import AUTHOR, PASSING, Stage, Status

SECONDS: Final = "seconds.jsonl"
"""The file with the seconds of each session."""
RIGHT, REFUSED, WRONG, FAILED, DIED = "right", "refused", "other values", "engine refuses", "engine dies"
OUTCOMES: Final = (RIGHT, REFUSED, WRONG, FAILED, DIED)
_BEFORE_FILES: Final = (Stage.SETUP, Stage.INPUT, Stage.CAPTURE, Stage.LOWER, Stage.SPEC, Stage.WRITE)


@dataclass(frozen=True, slots=True)
class Result:
    """One case with the file of one exporter in one release."""

    suite: str
    case: str
    """The test with its parameters, without the path of its file."""
    exporter: str
    release: str
    outcome: str
    """One of OUTCOMES by the profile `values`."""
    is_strict: bool
    """Whether it is right by the profile `strict`, too."""
    op: str
    message: str
    author: str
    """Who is wrong where values differ: a value of `Author`; empty if it is not clear."""
    export_seconds: float
    load_seconds: float
    run_seconds: float
    """Over all sizes."""
    sizes: list[dict[str, int]]
    """The sizes of its axes in each run."""

    @property
    def key(self) -> tuple[str, str]:
        """Return suite and case, which results of several exporters and releases share."""
        return self.suite, self.case


def right_counts(results: Sequence[Result]) -> tuple[int, int]:
    """Return how many results are right, and how many are strictly."""
    return sum(result.outcome == RIGHT for result in results), sum(result.is_strict for result in results)


@dataclass(slots=True)
class Results:
    """All results, with the engines and the seconds of the sessions."""

    all: list[Result] = field(default_factory=list)
    engines: dict[str, EngineLine] = field(default_factory=dict)
    """Title of the column -> engine."""
    seconds: float = 0.0

    @property
    def releases(self) -> list[str]:
        """Return the releases, the newest last."""
        return list(dict.fromkeys(engine.version for engine in self.engines.values() if engine.target == "tract"))

    @property
    def onnxruntime(self) -> str:
        """Return the version of onnxruntime; empty if the files did not run there."""
        versions = [engine.version for engine in self.engines.values() if engine.target == ONNXRUNTIME]
        return versions[0] if versions else ""

    @property
    def suites(self) -> list[str]:
        """Return the suites with results."""
        return list(dict.fromkeys(result.suite for result in self.all))

    def of(self, exporter: str, release: str, suite: str = "") -> list[Result]:
        """Return the results of an exporter in a release, of one suite or of all."""
        return [
            result
            for result in self.all
            if (result.exporter, result.release) == (exporter, release) and suite in ("", result.suite)
        ]


def read_results(site: Path, suites: Sequence[str]) -> Results:
    """Return the results of the suites that ran to their end, without cells that were skipped."""
    results = Results()
    for suite in suites:
        path = site / suite / MATRIX_FILE
        if not path.exists():
            continue
        records = read_records(path, lambda problem: None)
        if notice := completeness_of(records).notice:
            say(f"suite {suite} is left out: {notice}")
            continue
        runs = [record for record in records if isinstance(record, RunLine)]
        results.engines.update({engine.title: engine for run in runs for engine in run.engines})
        results.all += [_result(suite, cell) for cell in cells_of(records) if cell.status != Status.SKIP]
        results.seconds += sum(row["seconds"] for row in read_rows(site / SECONDS) if row["suite"] == suite)
    return results


def _result(suite: str, cell: CellLine) -> Result:
    profiles = cell.facts.get(PROFILES, {})
    error = cell.error
    return Result(
        suite,
        cell.case.partition("::")[2],
        cell.exporter or OWN_EXPORTER,
        cell.version,
        _outcome(cell),
        profiles.get("strict", cell.status) in PASSING,
        cell.op,
        "" if error is None else _headline(error.message),
        cell.facts.get(AUTHOR, ""),
        sum(cell.times.get(name, 0.0) for name in ("export", "capture", "lower", "write")),
        sum(cell.times.get(name, 0.0) for name in ("load", "optimise")),
        cell.times.get("run", 0.0),
        cell.sizes,
    )


def _headline(message: str) -> str:
    """Return the first line of a message, with the next one if it ends with a colon."""
    first, *following = message.split("\n", 2)[:2]
    return " ".join([first, *map(str.strip, following)]) if first.endswith(":") else first


def _outcome(cell: CellLine) -> str:
    if cell.status in PASSING:
        return RIGHT
    if cell.status == Status.MISMATCH:
        return WRONG
    if cell.status == Status.UNSUPPORTED or cell.stage in _BEFORE_FILES:
        return REFUSED
    return FAILED if cell.status == Status.ERROR else DIED
