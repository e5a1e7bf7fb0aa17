"""The results of a suite, read from the records of its session."""

from __future__ import annotations

import re
import textwrap
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from conformance.lab.command import say
from conformance.league.results import DIED, FAILED, REFUSED, RIGHT, WRONG, Result, Session
from pytest_t2n.config.engines import ONNXRUNTIME
from pytest_t2n.records.file import read_records
from pytest_t2n.records.folder import MATRIX_FILE
from pytest_t2n.records.index import completeness_of
from pytest_t2n.records.nodeids import OWN_EXPORTER
from pytest_t2n.records.schema import CellLine, EndLine, RunLine, cells_of
from t2n_core.exporters.archive import PROFILES
from t2n_core.parity.stage import AUTHOR, PASSING, Stage, Status

_BEFORE_FILES: Final = (Stage.SETUP, Stage.INPUT, Stage.CAPTURE, Stage.LOWER, Stage.SPEC, Stage.WRITE)
_LONGEST_MESSAGE: Final = 140
_DIGITS: Final = 4
"""Decimals of seconds."""


def results_of_session(report: Path, suite: str, seconds: int) -> tuple[Session, list[Result]] | None:
    """Return the session in the folder of a report with its results, without cells that were skipped.

    None if the session did not come to its end.
    """
    records = read_records(report / MATRIX_FILE, lambda problem: None)
    if notice := completeness_of(records).notice:
        say(f"suite {suite} is left out: {notice}")
        return None
    runs = [record for record in records if isinstance(record, RunLine)]
    (ended,) = (record.ended for record in records[-1:] if isinstance(record, EndLine))
    results = [_result(suite, cell) for cell in cells_of(records) if cell.status != Status.SKIP]
    return _session(suite, seconds, runs, ended), results


def _session(suite: str, seconds: int, runs: Sequence[RunLine], ended: str) -> Session:
    engines = [engine for run in runs for engine in run.engines]
    *_, platform = (platform for run in runs for platform in run.platforms)
    versions = [engine.version for engine in engines if engine.target == ONNXRUNTIME]
    software = ", ".join(f"{name} {platform.versions[name.lower()]}" for name in ("Python", "torch"))
    return Session(
        suite,
        seconds,
        ended.partition("T")[0],
        f"{platform.model}, {platform.cores} cores; {software}",
        list(dict.fromkeys(engine.version for engine in engines if engine.target == "tract")),
        versions[0] if versions else "",
        {engine.exporter: engine.exporter_version for engine in engines if engine.exporter},
    )


def _result(suite: str, cell: CellLine) -> Result:
    profiles = cell.facts.get(PROFILES, {})
    export = sum(cell.times.get(name, 0.0) for name in ("export", "capture", "lower", "write"))
    load = sum(cell.times.get(name, 0.0) for name in ("load", "optimise"))
    return Result(
        suite,
        cell.case.partition("::")[2],
        cell.exporter or OWN_EXPORTER,
        cell.version,
        _outcome(cell),
        profiles.get("strict", cell.status) in PASSING,
        cell.op,
        "" if cell.error is None else _headline(cell.error.message),
        cell.facts.get(AUTHOR, ""),
        *(round(seconds, _DIGITS) for seconds in (export, load, cell.times.get("run", 0.0))),
        zlib.crc32(msgspec.json.encode(cell.sizes)),
    )


def _headline(message: str) -> str:
    """Return the first line of a message, with the next one if it ends with a colon, without folders."""
    first, *following = message.split("\n", 2)[:2]
    text = " ".join([first, *map(str.strip, following)]) if first.endswith(":") else first
    return textwrap.shorten(re.sub(r"(?<!\w)/(?:[\w.+-]+/)+", "", text), _LONGEST_MESSAGE, placeholder=" …")


def _outcome(cell: CellLine) -> str:
    if cell.status in PASSING:
        return RIGHT
    if cell.status == Status.MISMATCH:
        return WRONG
    if cell.status == Status.UNSUPPORTED or cell.stage in _BEFORE_FILES:
        return REFUSED
    return FAILED if cell.status == Status.ERROR else DIED
