"""Results of earlier runs by everything that affects them, for `t2n matrix run --reuse`."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path

import msgspec

from pytest_t2n.cli.judging.code import digest_of_code
from pytest_t2n.cli.judging.plan import Plan, PlannedCell
from pytest_t2n.cli.judging.store import ResultStore
from pytest_t2n.cli.judging.unit import JudgedCell
from pytest_t2n.records.file import decode_line
from pytest_t2n.records.schema import CellLine, GraphLine, PlatformLine
from pytest_t2n.run.bundle_reader import archive_of, samples_digest
from pytest_t2n.run.reuse import is_script
from t2n_core.engine.processes.environment import ENGINE_THREADS
from t2n_core.engine.tiers import NATIVE, tier_environment, usable_features
from t2n_core.foreign import ForeignFileError, decode_json
from t2n_core.parity.stage import PASSING, Status

_SCHEMA = 1
_BATCH = 256
"""Results that are requested together."""
JUDGING = (
    "t2n_core/parity", "t2n_core/check/mismatch/author.py", "t2n_core/dialect", "t2n_core/nnef/reading",
    "t2n_core/level.py", "t2n_core/engine", "t2n_core/npz.py", "t2n_core/foreign.py",
    "pytest_t2n/cli/judging/unit.py", "pytest_t2n/records", "pytest_t2n/run/bundle_reader.py",
    "pytest_t2n/run/cell_run.py", "pytest_t2n/run/export_summary.py",
)  # fmt: skip
"""Files and folders of the code that judges and writes records."""
_OF_THE_BUNDLE = ("nodeid", "case", "engine_id", "label", "archive", "samples", "place")
"""Fields of a check that only locate it."""
_OF_ENGINES = (
    "CallsError", "EngineLoadError", "EngineOptimiseError", "EngineRunError", "EngineCrash", "EngineError",
    "InterfaceError", "ParityError", "PiecesError", "RowsError", "SecondCallError", "SpecError", "WeakCheck",
)  # fmt: skip
"""Classes of errors that are caused by engines and checks, not by the machine."""
_MACHINE = tuple(
    os.strerror(number)
    for number in (errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EIO, errno.EROFS,
                   errno.EACCES, errno.EDQUOT if hasattr(errno, "EDQUOT") else errno.ENOSPC)
)  # fmt: skip
"""Messages of a machine whose resources are exhausted."""
_OWN_DEATH = re.compile(r"panicked at |died of SIG(?:SEGV|ABRT|ILL|FPE)\b")
"""Crashes that an engine causes itself; other signals come from the machine, or from someone who uses it."""


class _StoredResult(msgspec.Struct, frozen=True):
    schema: int
    key: str
    sha256: str
    """Digest of the other texts."""
    record: str
    graph: str
    text: str


class Reuse:
    """The results of earlier runs for the cells of a run."""

    def __init__(self, store: ResultStore, bundle: Path, here: PlatformLine, memory: int, warn: Callable[[str], None]):
        """`here` is the platform of the engines, `memory` the limit of a job; `warn` is called for damaged results."""
        self._store, self._bundle, self._here, self._memory, self._warn = store, bundle, here, memory, warn
        self._digests = lru_cache(maxsize=1024)(self._digests_of)

    def stored_results(
        self, plan: Plan, is_requested: Callable[[str], bool]
    ) -> Iterator[tuple[CellLine, GraphLine | None, str]]:
        """Yield record, graph and description of each requested cell with a stored result."""
        cells = (planned for group in plan.cases.values() for planned in group if is_requested(planned.cell.nodeid))
        keyed = ((key, planned_cell) for planned_cell in cells if (key := self.key_of(planned_cell)))
        while batch := list(islice(keyed, _BATCH)):
            stored = self._store.get([key for key, _ in batch])
            for key, planned in batch:
                if key in stored and (result := self._read(key, planned, stored[key])) is not None:
                    yield result

    def keep(self, planned: PlannedCell, judged: JudgedCell) -> None:
        """Store a result, if it depends only on the archive and the engine."""
        record = decode_line(judged.record)
        key = self.key_of(planned)
        if not key or not isinstance(record, CellLine) or not is_lasting(record):
            return
        texts = judged.record.decode(), judged.graph.decode(), judged.text
        self._store.put(key, msgspec.json.encode(_StoredResult(_SCHEMA, key, _digest(texts), *texts)))

    def key_of(self, planned: PlannedCell) -> str:
        """Return the digest of everything that affects a cell; empty if that is unknown, or a file cannot be read."""
        engine = planned.cell.engine
        if is_script(engine):
            return ""
        resolved = dict(engine.resolved or {})
        try:
            checks = []
            for check in planned.checks:
                fields = msgspec.to_builtins(check)
                rest = {name: value for name, value in fields.items() if name not in _OF_THE_BUNDLE}
                checks.append([*self._digests(check.archive, check.samples), rest])
        except Exception:
            return ""  # its record reports the problem of the file
        tier = resolved.get("tier", NATIVE)
        is_tract = engine.resolved is not None
        features = usable_features(self._here.features, tier, self._here.machine) if is_tract else self._here.features
        numpy = {"numpy": self._here.versions.get("numpy", "")}
        deciding = {
            "schema": _SCHEMA,
            "code": judging_code(),
            "checks": checks,
            "engine": [
                engine.target,
                engine.version,
                *(resolved.get(name, "") for name in ("sha256", "kind", "runtime", "paths")),
            ],
            "tier": tier,
            "kernels": list(features),
            "machine": [self._here.system, self._here.machine],
            "environment": {**ENGINE_THREADS, **tier_environment(tier)} if is_tract else self._here.environment,
            "packages": numpy if is_tract else self._here.versions,
            "memory": self._memory,
        }
        return hashlib.sha256(msgspec.json.encode(deciding, order="deterministic")).hexdigest()

    def _digests_of(self, archive: str, samples: str) -> tuple[str, str]:
        from t2n_core.files import archive_digest

        return archive_digest(archive_of(self._bundle, archive))[0], samples_digest(self._bundle, samples)

    def _read(self, key: str, planned: PlannedCell, data: bytes) -> tuple[CellLine, GraphLine | None, str] | None:
        """Return a result as a planned cell's; None, with a warning, if it is damaged."""
        cell = planned.cell
        try:
            stored = decode_json(data, _StoredResult, "it")
            record = msgspec.json.decode(stored.record, type=CellLine)
            graph = msgspec.json.decode(stored.graph, type=GraphLine) if stored.graph else None
            archives = {self._digests(check.archive, check.samples)[0] for check in planned.checks}
            problem = _problem_of(stored, key, record, graph, archives)
        except (ForeignFileError, msgspec.MsgspecError, ValueError, RecursionError) as exc:
            problem = str(exc)
        if problem:
            self._warn(f"--reuse: a result is damaged, and {cell.nodeid} is judged again: {problem[:200]}")
            return None
        facts = record.facts
        if record.platform != cell.engine.platform:
            facts = {**facts, "reused_from": record.platform}
        engine = cell.engine
        reused_record = msgspec.structs.replace(
            record, nodeid=cell.nodeid, case=cell.case, target=engine.target, version=engine.version,
            label=engine.label, exporter=engine.exporter, platform=engine.platform, on="", expected="", exported="",
            facts=facts, reused=True,
        )  # fmt: skip
        return reused_record, graph, stored.text


def is_lasting(record: CellLine) -> bool:
    """Return whether a run on another machine of this kind would have the same result."""
    if record.status in (*PASSING, Status.MISMATCH):
        return True
    if record.status not in (Status.ERROR, Status.UNSUPPORTED, Status.CRASH) or record.error is None:
        return False
    error = record.error
    if error.error_class not in _OF_ENGINES or any(words in error.message for words in _MACHINE):
        return False
    return record.status != Status.CRASH or _OWN_DEATH.search(error.message) is not None


@cache
def judging_code() -> str:
    """Return a digest of the code that judges and writes records, on which results may depend."""
    return digest_of_code(JUDGING)


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256(msgspec.json.encode(list(texts))).hexdigest()


def _problem_of(stored: _StoredResult, key: str, record: CellLine, graph: GraphLine | None, archives: set[str]) -> str:
    """Return the problem of a stored result; empty if it is valid."""
    if stored.schema != _SCHEMA or stored.key != key:
        return "it is the result of another check"
    if stored.sha256 != _digest((stored.record, stored.graph, stored.text)):
        return "its SHA-256 differs from the recorded one"
    if not is_lasting(record) or (record.archive_sha256 and record.archive_sha256 not in archives):
        return "it is not a result of this archive"
    return "" if (graph.key if graph is not None else "") == record.graph else "it has another graph"
