"""The judgement of programs in one engine, on one path."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from conformance.dialect.judge import OF_REPLY, Status, difference
from conformance.dialect.passes.program import Program
from t2n_core.engine.paths import EnginePath
from t2n_core.engine.pool import TractRunner


@dataclass(frozen=True)
class PassVerdict:
    """The verdict on a program in one release, on one path."""

    program: Program
    release: str
    path: EnginePath
    status: Status
    reason: str = ""
    """The engine's error, or how its results differ."""


def judge_programs(
    programs: Iterable[Program], engine: TractRunner, path: EnginePath, folder: Path, *, timeout: float = 10.0
) -> Iterator[PassVerdict]:
    """Yield the verdict of each program whose operators the release has; `folder` takes one archive at a time."""
    for program in programs:
        if program.is_in(engine.version):
            status, reason = _judged(program, engine, path, folder / program.name, timeout)
            yield PassVerdict(program, engine.version, path, status, reason)


def _judged(
    program: Program, engine: TractRunner, path: EnginePath, folder: Path, timeout: float
) -> tuple[Status, str]:
    archive = program.write(folder)
    try:
        reply = engine.run(archive, [list(program.inputs.values())], timeout=timeout, path=path)
        if reply.status != "ok":
            return OF_REPLY[reply.status], f"{reply.stage}: {reply.message}"
        for name, actual, expected in zip(program.outputs, reply.outputs[0], program.expected(archive), strict=True):
            if differs := difference(actual, expected):
                return "wrong", f"{name}: {differs}"
        return "right", ""
    finally:
        shutil.rmtree(archive)
