"""Cases for the engine's repository: the smallest program of each reason that a release does not compute rightly."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from conformance.dialect.passes.judging import PassVerdict
from conformance.dialect.passes.known import explanation
from conformance.dialect.passes.session import smallest
from conformance.dialect.upstream import write_case


def write_upstream_programs(verdicts: Iterable[PassVerdict], release: str, folder: Path) -> list[str]:
    """Write the programs that a release does not compute rightly into a folder, and return their names.

    A case has the form of tract's `harness/nnef-test-cases`, with the text of an issue next to it.
    """
    names = []
    for verdict in smallest(candidate for candidate in verdicts if candidate.release == release):
        cause = explanation(verdict)
        title = f"{cause.name}, tract {release}: {cause.reason}" if cause else f"tract {release}: {verdict.reason}"
        program = verdict.program
        if write_case(program.write, list(program.inputs.values()), folder / program.name, release, title):
            names.append(program.name)
    return names
