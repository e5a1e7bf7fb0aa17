"""The run of all cases in releases; verdicts are kept in a folder, so that an interrupted run is continued."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from conformance.lab.command import say
from conformance.lab.rows import RowFile, read_rows
from conformance.onnx.cases import generated
from conformance.onnx.judge import judge
from conformance.onnx.table import Row, Table, Verdict
from t2n_core.engine import close_all, engine_for, resolve_engines
from t2n_core.engine.causes import deepest_first
from t2n_core.onnx_file.refusals import refusal_of


def judge_releases(releases: Sequence[str], folder: Path, jobs: int) -> None:
    """Judge all cases in releases, several at a time, and keep the verdicts in a folder."""
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(judge_release, release, folder): release for release in releases}
        for done in as_completed(waiting):
            say(f"tract {waiting[done]}: {done.result():.0f} s")


def judge_release(release: str, folder: Path, names: Iterable[str] = ()) -> float:
    """Judge cases, by default all, that a folder has no verdict on; return the seconds that it took."""
    began, cases, verdicts = time.monotonic(), generated().cases, read_verdicts(release, folder)
    (resolved,) = resolve_engines(release)
    engine, rows = engine_for(resolved), RowFile(_file(release, folder))
    with TemporaryDirectory(prefix="t2n-onnx-") as scratch:
        for name in names or cases:
            if name not in verdicts:
                verdict = judge(cases[name], engine, Path(scratch))
                rows.add({"case": name, "status": verdict.status, "reason": verdict.reason})
    close_all()
    return time.monotonic() - began


def read_verdicts(release: str, folder: Path) -> dict[str, Verdict]:
    """Return the verdicts on a release that a folder has, by case.

    The unfinished last line of an interrupted run is removed.
    """
    file = _file(release, folder)
    if file.exists():
        complete_lines, _, _ = file.read_text("utf-8").rpartition("\n")
        file.write_text(f"{complete_lines}\n" if complete_lines else "", "utf-8")
    return {row["case"]: Verdict(row["status"], row["reason"]) for row in read_rows(file)}


def table_of(releases: Sequence[str], folder: Path) -> Table:
    """Return the table of the verdicts that a folder has. Raises KeyError if a case was not judged in a release."""
    verdicts = {release: read_verdicts(release, folder) for release in releases}
    rows = []
    for case in generated().cases.values():
        of_case = {release: verdicts[release][case.name] for release in releases}
        off = [verdict.reason for verdict in of_case.values() if verdict.status in ("rounding", "wrong")]
        statuses = {release: verdict.status for release, verdict in of_case.items()}
        notes = off[-1] if off else "", _kind(of_case[releases[-1]])
        rows.append(Row(case.name, case.operator, case.opset, statuses, *notes))
    rows.sort(key=lambda row: (row.operator, row.opset, row.case))
    return Table(onnx.__version__, tuple(releases), dict(sorted(generated().left_out.items())), tuple(rows))


def _kind(verdict: Verdict) -> str:
    if verdict.status != "refused":
        return ""
    refusal = refusal_of(deepest_first(verdict.reason))
    return refusal.kind if refusal else "other"


def _file(release: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{release}.jsonl"
