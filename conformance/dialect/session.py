"""The run of operators in releases: their verdicts, and the table of them."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance.dialect.judge import STATUSES, Verdict, judge
from conformance.dialect.known import explanation
from conformance.dialect.results import Judged, append_result, digest_of, read_results, suspects_in
from conformance.lab.command import say
from conformance.lab.pages.tables import table
from t2n_core.dialect.cases import cases
from t2n_core.dialect.operators import functions
from t2n_core.engine import ResolvedEngine, close_all, engine_for, resolve_engines
from t2n_core.engine.paths import EnginePath
from t2n_core.engine.provision.resolved import CPU
from t2n_core.errors import EngineLoadError
from t2n_core.nnef.spec import spec_for


def judge_release(
    release: str,
    ops: Sequence[str],
    count: int,
    folder: Path,
    runtime: str = CPU,
    path: EnginePath = EnginePath.DECLUTTER,
) -> float:
    """Judge operators in a release and keep the verdicts in a folder, reusing its verdicts on the same cases.

    Returns the seconds that the verdicts took, including earlier runs. Raises EngineLoadError if this machine lacks the
    runtime.
    """
    spec, definitions, before = spec_for("tract", release), functions(), read_results(folder, release)
    suspects, engine = suspects_in(folder, release), engine_for(_resolve(release, runtime))
    if problem := engine.why_unusable():
        raise EngineLoadError(f"tract {release} {runtime}: {problem}")
    seconds = 0.0
    with TemporaryDirectory(prefix="t2n-dialect-") as scratch:
        for op in filter(spec.has, ops):
            drawn, signature = list(cases(op, count)), spec.operator(op)
            digest = digest_of(drawn, definitions.get(op), signature)
            judged = before.get(op)
            if judged is None or judged.digest != digest:
                began = time.monotonic()
                options: Any = {"suspects": suspects.get(op, ()), "runtime": runtime, "path": path}
                verdicts = list(judge(drawn, definitions.get(op), signature, engine, Path(scratch), **options))
                rows = [(verdict.number, verdict.status, verdict.reason) for verdict in verdicts]
                judged = Judged(op, digest, round(time.monotonic() - began, 2), rows)
                append_result(folder, release, judged)
            seconds += judged.seconds
    close_all()
    return seconds


def _resolve(release: str, runtime: str) -> ResolvedEngine:
    (resolved,) = resolve_engines(release)
    return replace(resolved, runtime=runtime)


def judge_releases(
    releases: Sequence[str],
    ops: Sequence[str],
    count: int,
    folder: Path,
    jobs: int,
    runtime: str = CPU,
    path: EnginePath = EnginePath.DECLUTTER,
) -> float:
    """Judge operators in releases, several at a time, as `judge_release` does; return the seconds of all."""
    if jobs == 1 or len(releases) == 1:
        return sum(judge_release(release, ops, count, folder, runtime, path) for release in releases)
    seconds = 0.0
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        waiting = {
            pool.submit(judge_release, release, ops, count, folder, runtime, path): release for release in releases
        }
        for done in as_completed(waiting):
            seconds += done.result()
            say(f"tract {waiting[done]}: {done.result():.0f} s")
    return seconds


def verdicts(
    releases: Iterable[str],
    ops: Sequence[str],
    count: int,
    folder: Path,
    runtime: str = CPU,
    path: EnginePath = EnginePath.DECLUTTER,
) -> Iterator[Verdict]:
    """Yield the verdicts of a folder, by operator and release."""
    results = {release: read_results(folder, release) for release in releases}
    for op in ops:
        drawn = list(cases(op, count))
        for release, release_results in results.items():
            if op in release_results and spec_for("tract", release).has(op):
                yield from release_results[op].verdicts(release, drawn, runtime, path)


def matrix(verdicts: Iterable[Verdict]) -> str:
    """Return the table operator × release: how many cases were right, and how many have each other status."""
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    releases: dict[str, None] = {}
    for verdict in verdicts:
        counts[verdict.case.op][verdict.release][verdict.status] += 1
        releases.setdefault(verdict.release)

    def cell(of: Counter[str]) -> str:
        return ", ".join(f"{of[status]} {status}" for status in STATUSES if of[status])

    rows = ([f"`{op}`", *(cell(counts[op][release]) for release in releases)] for op in sorted(counts))
    return table(["operator", *releases], rows)


def smallest(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return, for each operator, release and explanation, the smallest case that is not right."""
    chosen: dict[tuple[str, str, str, str], Verdict] = {}
    for verdict in verdicts:
        if verdict.status == "right":
            continue
        cause = explanation(verdict)
        key = verdict.case.op, verdict.release, verdict.status, cause.reason if cause else ""
        if key not in chosen or _elements(verdict) < _elements(chosen[key]):
            chosen[key] = verdict
    return list(chosen.values())


def _elements(verdict: Verdict) -> int:
    return sum(array.size for _, _, array in verdict.case.tensors())
