"""Verdicts of releases, kept in a folder: an interrupted run resumes where it stopped."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from packaging.version import Version

from conformance.dialect import judge
from conformance.dialect.judge import Status, Verdict
from conformance.lab.rows import RowFile
from t2n_core.dialect.cases import Case
from t2n_core.dialect.registry import Definition
from t2n_core.engine.paths import EnginePath
from t2n_core.engine.provision.resolved import CPU
from t2n_core.nnef.signatures import Signature

_WITH_RESULTS = ("right", "wrong")


@dataclass(frozen=True)
class Judged:
    """The verdicts of an operator in a release."""

    op: str
    digest: str
    """Digest of the cases, the results of the definition, and the code that compares."""
    seconds: float
    found: Sequence[tuple[int, Status, str]]
    """The number of each case, the verdict and its reason."""

    def verdicts(
        self, release: str, cases: Sequence[Case], runtime: str = CPU, path: EnginePath = EnginePath.DECLUTTER
    ) -> Iterable[Verdict]:
        """Yield the verdicts with their cases."""
        for number, status, reason in self.found:
            yield Verdict(cases[number], number, release, status, reason, runtime, path)


def digest_of(cases: Sequence[Case], definition: Definition | None, signature: Signature) -> str:
    """Return a digest of everything that the verdicts on an operator depend on, apart from the engine."""
    digest = hashlib.sha256(inspect.getsource(judge.difference).encode())
    for case in cases:
        if judge.applies(case, signature):
            digest.update(case.graph(signature).encode())
            for array in (*(array for _, _, array in case.tensors()), *case.expected(definition)):
                digest.update(f"{array.dtype}{array.shape}".encode())
                digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def read_results(folder: Path, release: str) -> Mapping[str, Judged]:
    """Return the verdicts on a release that a folder holds, by operator.

    The unfinished last line of an interrupted run is ignored.
    """
    path, by_operator = _file(folder, release), {}
    for line in path.read_text("utf-8").splitlines(keepends=True) if path.exists() else ():
        if line.endswith("\n"):
            judged = Judged(**json.loads(line))
            by_operator[judged.op] = judged
    return by_operator


def suspects_in(folder: Path, release: str) -> Mapping[str, set[int]]:
    """Return the cases, by operator, that had no results in the nearest release of the line that a folder has."""
    version = Version(release)
    others = [Version(path.stem) for path in folder.glob("*.jsonl") if path.stem != release]
    near = [other for other in others if other.release[:2] == version.release[:2]]
    if not near:
        return {}
    results = read_results(folder, str(min(near, key=lambda other: abs(other.micro - version.micro))))
    return {op: {row[0] for row in judged.found if row[1] not in _WITH_RESULTS} for op, judged in results.items()}


def append_result(folder: Path, release: str, judged: Judged) -> None:
    """Add the verdicts on an operator to a folder; they replace earlier ones."""
    folder.mkdir(parents=True, exist_ok=True)
    RowFile(_file(folder, release)).add(asdict(judged))


def _file(folder: Path, release: str) -> Path:
    return folder / f"{release}.jsonl"
