"""Results of the league: read from the records of a suite, and kept in files beside the pages.

results/sessions.jsonl   for each suite: when, where and with which versions it ran
results/SUITE.jsonl.gz   for each case, exporter and release: the outcome
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from packaging.version import Version

SESSIONS: Final = "sessions.jsonl"
RIGHT, REFUSED, WRONG, FAILED, DIED = "right", "refused", "other values", "engine refuses", "engine dies"
OUTCOMES: Final = (RIGHT, REFUSED, WRONG, FAILED, DIED)


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """One case with the file of one exporter in one release."""

    suite: str
    case: str
    """The test with its parameters, without the path of its file."""
    exporter: str
    release: str
    outcome: str
    """One of OUTCOMES by the profile `values`."""
    is_strict: bool = False
    """Whether it is right by the profile `strict`, too."""
    op: str = ""
    message: str = ""
    """The first line of the error, without folders."""
    author: str = ""
    """Who is wrong where values differ: a value of `Author`; empty if it is not clear."""
    export_seconds: float = 0.0
    load_seconds: float = 0.0
    run_seconds: float = 0.0
    """Over all sizes."""
    sizes: int = 0
    """A checksum of the sizes of its axes in each run."""

    @property
    def key(self) -> tuple[str, str]:
        """Return suite and case, which results of several exporters and releases share."""
        return self.suite, self.case


class Session(msgspec.Struct, frozen=True):
    """The run of one suite, which may have been interrupted."""

    suite: str
    seconds: int
    date: str
    """The day on which it ended: `2026-11-30`."""
    platform: str
    """Processor, cores, and the versions of Python and PyTorch."""
    releases: list[str]
    """The releases of tract."""
    onnxruntime: str
    """Its version; empty if the files did not run there."""
    exporters: dict[str, str]
    """The version of each exporter; empty if it has none."""


def right_counts(results: Sequence[Result]) -> tuple[int, int]:
    """Return how many results are right, and how many are strictly."""
    return sum(result.outcome == RIGHT for result in results), sum(result.is_strict for result in results)


@dataclass(frozen=True, slots=True)
class Results:
    """The results of all suites, with their sessions."""

    all: list[Result]
    sessions: list[Session]

    @property
    def releases(self) -> list[str]:
        """Return the releases of tract, the newest last."""
        return sorted({release for session in self.sessions for release in session.releases}, key=Version)

    @property
    def onnxruntime(self) -> str:
        """Return the newest version of onnxruntime; empty if the files did not run there."""
        return max((session.onnxruntime for session in self.sessions), key=lambda text: Version(text or "0"))

    @property
    def suites(self) -> list[str]:
        """Return the suites with results."""
        return [session.suite for session in self.sessions]

    def of(self, exporter: str, release: str, suite: str = "") -> list[Result]:
        """Return the results of an exporter in a release, of one suite or of all."""
        return [
            result
            for result in self.all
            if (result.exporter, result.release) == (exporter, release) and suite in ("", result.suite)
        ]


def keep_results(folder: Path, session: Session, results: Sequence[Result]) -> None:
    """Write the results of a suite in place of earlier ones."""
    folder.mkdir(parents=True, exist_ok=True)
    others = [other for other in _read_sessions(folder) if other.suite != session.suite]
    ordered = sorted([*others, session], key=lambda each: each.suite)
    (folder / SESSIONS).write_bytes(msgspec.json.Encoder().encode_lines(ordered))
    lines = msgspec.json.Encoder().encode_lines(results)
    file_of(folder, session.suite).write_bytes(gzip.compress(lines, mtime=0))  # equal results are equal files


def read_results(folder: Path, suites: Sequence[str]) -> Results:
    """Return the results that are kept for these suites, in their order."""
    sessions = sorted(
        (session for session in _read_sessions(folder) if session.suite in suites),
        key=lambda session: suites.index(session.suite),
    )
    decoder = msgspec.json.Decoder(Result)
    files = [gzip.decompress(file_of(folder, session.suite).read_bytes()) for session in sessions]
    return Results([result for lines in files for result in decoder.decode_lines(lines)], sessions)


def file_of(folder: Path, suite: str) -> Path:
    """Return the file with the results of a suite."""
    return folder / f"{suite}.jsonl.gz"


def _read_sessions(folder: Path) -> list[Session]:
    path = folder / SESSIONS
    return msgspec.json.Decoder(Session).decode_lines(path.read_bytes()) if path.exists() else []
