"""The run of programs in releases, on their paths: verdicts that are kept, and the table of them."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from conformance.dialect.judge import STATUSES
from conformance.dialect.passes.judging import PassVerdict, judge_programs
from conformance.dialect.passes.known import explanation
from conformance.dialect.passes.program import Program
from conformance.lab.pages.tables import table
from conformance.lab.rows import RowFile, read_rows
from t2n_core.engine.paths import EnginePath, paths_of_release
from t2n_core.engine.pool import TractRunner

PATHS: Final = (EnginePath.DECLUTTER, EnginePath.OPTIMISE_ONLY)


def paths_in(release: str, selected: str = "") -> list[EnginePath]:
    """Return a release's paths on which programs are judged, or only its paths in a comma list."""
    return [path for path in paths_of_release(release, selected) if path in PATHS]


def judge_kept(
    programs: Sequence[Program], engine: TractRunner, path: EnginePath, folder: Path | None
) -> Iterator[PassVerdict]:
    """Yield the programs' verdicts; the folder's verdicts on the same programs are reused."""
    file = None if folder is None else folder / f"{engine.version}-{path}.jsonl"
    stored_rows = {row["program"]: row for row in read_rows(*([file] if file else []))}
    by_digest = {program.name: _digest(program) for program in programs}
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    rows = RowFile(file)
    with TemporaryDirectory(prefix="t2n-passes-") as scratch:
        for program in programs:
            row = stored_rows.get(program.name)
            if row is not None and row["digest"] == by_digest[program.name]:
                yield PassVerdict(program, engine.version, path, row["status"], row["reason"])
                continue
            for verdict in judge_programs([program], engine, path, Path(scratch)):
                outcome = {"status": verdict.status, "reason": verdict.reason}
                rows.add({"program": program.name, "digest": by_digest[program.name], **outcome})
                yield verdict


def _digest(program: Program) -> str:
    arrays = [*program.inputs.values(), *program.stored.values()]
    data = b"".join([program.graph().encode(), *(array.tobytes() for array in arrays)])
    return hashlib.sha256(data).hexdigest()[:16]


def matrix(verdicts: Iterable[PassVerdict]) -> str:
    """Return the table of releases and paths: how many programs were right, and of the others how many of each."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for verdict in verdicts:
        counts[verdict.release, verdict.path][verdict.status] += 1
    rows = [[release, path, *(str(of[status]) for status in STATUSES)] for (release, path), of in counts.items()]
    return table(["tract", "path", *STATUSES], rows)


def smallest(verdicts: Iterable[PassVerdict]) -> list[PassVerdict]:
    """Return, for each release, path and explanation, the program of the fewest statements that is not right."""
    chosen: dict[tuple[str, str, str, str], PassVerdict] = {}
    for verdict in verdicts:
        if verdict.status == "right":
            continue
        cause = explanation(verdict)
        key = verdict.release, verdict.path, verdict.status, cause.reason if cause else verdict.program.name
        if key not in chosen or len(verdict.program.steps) < len(chosen[key].program.steps):
            chosen[key] = verdict
    return list(chosen.values())
