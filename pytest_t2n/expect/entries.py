"""Entries of expected failures, in TOML files of the user's project, and the cells that they fit.

    [[expect]]
    case = "test_model.py::test_encoder[*]"   # or a list; * and ? stand for any letters, `\\*` is a star
    engine = "tract>=0.20,<0.21"              # or "khronos", "tract>=0.23 no-fma" for one kernel tier, or a list
    stage = "optimise"
    status = "crash"
    error = "EngineCrash"                     # optional: the class of the error, any without it
    reason = "the scan of this line panics on a bidirectional net"
    issue = "https://…"                       # optional

An entry of a mismatch also limits its size, the largest difference of an element: `off_by = 0.002`, or `inf` for any,
also for NaN and another shape. The first entry that fits a cell counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pytest_t2n.expect.engines import check_engine, fits_engine
from pytest_t2n.expect.size import off_by
from pytest_t2n.records.nodeids import names_of
from pytest_t2n.records.schema import CellLine
from t2n_core.parity.stage import Stage, Status

FAILURES = tuple(status.value for status in Status if status not in (Status.PASS, Status.SKIP, Status.NOT_RUN))
"""Statuses that an entry can expect."""
BEFORE_EXPORTS = (Stage.SETUP, Stage.INPUT)
"""Stages of an error before any export, which is a broken test and not a known limitation."""
UNPROVEN = ("NotCheckedError", "UnfinishedCheckError", "SubtestFailed")
"""Classes of errors of a test that proves nothing, or fails for another reason than its model."""
_REQUIRED = ("case", "engine", "stage", "status", "reason")
_KNOWN = (*_REQUIRED, "issue", "error", "off_by")
_LISTS = ("case", "engine")
_SPECIAL = frozenset("*?")
_GLOB_PART = re.compile(r"\\[*?]|.", re.DOTALL)
HEADER_LINE = re.compile(r"\s*\[\[\s*expect\s*\]\]")


class ExpectationError(Exception):
    """A file of expectations that cannot be used; the message names the file, the line and the problem."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One case of an entry, in built-in types, so that it can be sent to workers."""

    case: str
    engines: tuple[str, ...]
    stage: str
    status: str
    reason: str
    issue: str = ""
    error: str = ""
    """Class of the error; empty for any."""
    off_by: float | None = None
    """The largest difference of a mismatch; with None no mismatch is expected."""
    file: str = ""
    """Name of the file in messages."""
    line: int = 0

    @property
    def place(self) -> str:
        """Return the file and line of the entry."""
        return f"{self.file}:{self.line}"

    @property
    def why(self) -> str:
        """Return the reason of the entry, with its issue if it has one."""
        return f"{self.reason} ({self.issue})" if self.issue else self.reason

    def fits(self, case: str, target: str, version: str, label: str) -> bool:
        """Return True if the entry fits this cell."""
        return self.fits_engine(target, version, label) and self.fits_case(case)

    def fits_case(self, case: str) -> bool:
        """Return True if the entry names this case by its node id, by file name and test, or by the test alone."""
        return any(_glob(self.case).fullmatch(name) for name in names_of(case))

    def fits_engine(self, target: str, version: str, label: str) -> bool:
        """Return True if the entry names this engine."""
        return any(fits_engine(engine, target, version, label) for engine in self.engines)

    def holds(self, record: CellLine) -> bool:
        """Return True if the entry expects exactly this failure, in kind and in size."""
        if (record.status, record.stage) != (self.status, self.stage) or not can_be_expected(record):
            return False
        if self.error and (record.error is None or record.error.error_class != self.error):
            return False
        return record.status != Status.MISMATCH or (self.off_by is not None and off_by(record) <= self.off_by)

    def describe(self) -> str:
        """Return the failure as text: "mismatch at stage `compare`, off by at most 0.002,"."""
        failure = f"{self.status} ({self.error})" if self.error else self.status
        size = "" if self.off_by is None else f", off by at most {self.off_by:g},"
        return f"{failure} at stage `{self.stage}`{size}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in built-in types: xdist would turn the tuple into a list."""
        return {**asdict(self), "engines": list(self.engines)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Expectation:
        """Return the expectation of `to_dict`."""
        return cls(**{**fields, "engines": tuple(fields["engines"])})


def can_be_expected(record: CellLine) -> bool:
    """Return whether a failure is the model's: not a broken test's, an unchecked test's, or another part's.

    Of input failures only the exporter's own refusal counts.
    """
    error = record.error.error_class if record.error is not None else ""
    if record.stage == Stage.SETUP or error in UNPROVEN:
        return False
    return record.stage != Stage.INPUT or error == "InputError"


class Expectations:
    """The entries of a session, in order of precedence."""

    def __init__(self, entries: Iterable[Expectation] = ()) -> None:
        self.entries: Sequence[Expectation] = tuple(entries)
        self._plain: dict[str, list[int]] = {}
        """Indices of the entries that name a single case, by that case."""
        self._patterns: list[int] = []
        for index, entry in enumerate(self.entries):
            if _SPECIAL.isdisjoint(entry.case):
                self._plain.setdefault(entry.case, []).append(index)
            else:
                self._patterns.append(index)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def find(self, case: str, target: str, version: str, label: str) -> Expectation | None:
        """Return the first entry that fits a cell."""
        return next((self.entries[index] for index in self.fitting(case, target, version, label)), None)

    def fitting(self, case: str, target: str, version: str, label: str) -> list[int]:
        """Return the indices of all entries that fit a cell, in order."""
        exact_matches = [index for name in names_of(case) for index in self._plain.get(name, ())]
        places = sorted(exact_matches + [index for index in self._patterns if self.entries[index].fits_case(case)])
        return [index for index in places if self.entries[index].fits_engine(target, version, label)]

    def to_list(self) -> list[dict[str, Any]]:
        """Return the entries in built-in types."""
        return [entry.to_dict() for entry in self.entries]

    @classmethod
    def from_list(cls, entries: Iterable[Mapping[str, Any]]) -> Expectations:
        """Return the expectations of `to_list`."""
        return cls(Expectation.from_dict(entry) for entry in entries)


def read_expectations(paths: Iterable[Path], root: Path, *, missing_ok: bool = False) -> Expectations:
    """Return the entries of all files in turn; `root` shortens the names of files in messages.

    Raises:
        ExpectationError: a file is missing (unless `missing_ok`), is not TOML, or has a wrong entry.
    """
    entries: list[Expectation] = []
    for path in paths:
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
        try:
            entries += parse_expectations(path.read_text(encoding="utf-8"), name)
        except FileNotFoundError:
            if not missing_ok:
                raise ExpectationError(f"{name}: there is no such file") from None
        except (OSError, UnicodeDecodeError) as exc:
            raise ExpectationError(f"{name}: {exc}") from None
    return Expectations(entries)


def parse_expectations(text: str, file: str) -> list[Expectation]:
    """Return the entries of one file. Raises ExpectationError."""
    import tomllib  # a session without such files does not need it

    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise ExpectationError(f"{file}: {exc}") from None
    for name in content:
        if name != "expect":
            raise ExpectationError(f"{file}: unknown table {name!r}; entries are [[expect]]")
    entries = content.get("expect", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ExpectationError(f"{file}: entries are written [[expect]], with two brackets")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if HEADER_LINE.match(line)]
    lines += [0] * (len(entries) - len(lines))
    return [
        expectation for entry, line in zip(entries, lines, strict=False) for expectation in _entry(entry, file, line)
    ]


def glob_fits(pattern: str, text: str) -> bool:
    """Return whether the complete text fits the pattern; only * and ? are special."""
    return _glob(pattern).fullmatch(text) is not None


def literal_glob(text: str) -> str:
    """Return the pattern that only this text fits."""
    return re.sub(r"[*?]", r"\\\g<0>", text)


def names_suite(entry: Expectation, suites: Iterable[str]) -> bool:
    """Return whether an entry names one of the collected suites."""
    suite = entry.case.partition("[")[0]
    path, has_path, _ = suite.partition("::")
    if has_path and any(_glob(path).fullmatch(name.partition("::")[0]) for name in suites if "::" in name):
        return True
    return any(_glob(suite).fullmatch(name) for name in suites)


def _entry(fields: Mapping[str, Any], file: str, line: int) -> list[Expectation]:
    """Return one expectation for each case of an entry."""

    def refuse(problem: str) -> ExpectationError:
        return ExpectationError(f"{file}:{line}: {problem}")

    for name in fields:
        if name not in _KNOWN:
            raise refuse(f"unknown key {name!r}; known: {', '.join(_KNOWN)}")
    for name in _REQUIRED:
        if not fields.get(name):
            raise refuse(f"`{name}` is missing")
    cases, engines = (fields[n] if isinstance(fields[n], list) else [fields[n]] for n in _LISTS)
    for name, several in zip(_LISTS, (cases, engines), strict=True):
        if not all(isinstance(item, str) and item for item in several):
            raise refuse(f"`{name}` is neither a text nor a list of texts")
    for name in _KNOWN:
        if name not in (*_LISTS, "off_by") and not isinstance(fields.get(name, ""), str):
            raise refuse(f"`{name}` is not a text")
    for engine in engines:
        try:
            check_engine(engine)
        except ValueError as exc:
            raise refuse(str(exc)) from None
    if fields["stage"] not in [stage.value for stage in Stage]:
        raise refuse(f"{fields['stage']!r} is not a stage; one of {', '.join(Stage)}")
    if fields["stage"] == Stage.SETUP:
        raise refuse("a failure at stage 'setup' is that of a broken test, which no entry excuses")
    if fields["status"] not in FAILURES:
        raise refuse(f"{fields['status']!r} is not a failure; one of {', '.join(FAILURES)}")
    if not fields["reason"].strip():
        raise refuse("`reason` is missing")
    size = fields.get("off_by")
    if size is not None and (type(size) not in (int, float) or not size > 0):
        raise refuse("`off_by` is not a number above 0")
    if size is not None and fields["status"] != Status.MISMATCH:
        raise refuse(f"`off_by` is the size of a mismatch, and {fields['status']!r} has none")
    rest = {name: fields.get(name, "") for name in ("stage", "status", "reason", "issue", "error")}
    return [Expectation(case, tuple(engines), off_by=size, file=file, line=line, **rest) for case in cases]


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which a backslash escapes * and ?.

    Not fnmatch, which reads brackets, as in most node ids, as sets of letters. The text between two stars is searched
    once, from the left, without backtracking, which would take minutes with many stars.
    """
    pieces = [""]
    for part in _GLOB_PART.findall(pattern):
        if part == "*":
            pieces.append("")
        else:
            pieces[-1] += "." if part == "?" else re.escape(part[-1:])
    first, *others = pieces
    if not others:
        return re.compile(first, re.DOTALL)
    between = "".join(f"(?>.*?{piece})" for piece in others[:-1])
    return re.compile(f"{first}{between}.*{others[-1]}", re.DOTALL)
