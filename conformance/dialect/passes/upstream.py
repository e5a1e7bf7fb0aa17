"""Cases for the engine's repository: the smallest program of each reason that a release does not compute rightly."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from conformance.dialect.passes.judging import PassVerdict
from conformance.dialect.passes.known import explanation
from conformance.dialect.passes.session import smallest
from pytest_t2n.cli import main


def write_upstream_programs(found: Iterable[PassVerdict], release: str, folder: Path) -> list[str]:
    """Write the programs that a release does not compute rightly into a folder, and return their names.

    A case has the form of tract's `harness/nnef-test-cases`, with the text of an issue beside it.
    """
    names = []
    for verdict in smallest(one for one in found if one.release == release):
        cause = explanation(verdict)
        title = f"{cause.name}, tract {release}: {cause.reason}" if cause else f"tract {release}: {verdict.reason}"
        if _bundled(verdict, folder / verdict.program.name, title):
            names.append(verdict.program.name)
    return names


def _bundled(verdict: PassVerdict, output: Path, title: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="t2n-upstream-") as scratch:
        archive, inputs = verdict.program.write(Path(scratch) / output.name), Path(scratch) / "inputs.npz"
        np.savez(inputs, **verdict.program.inputs)  # type: ignore[arg-type]
        given = ["--inputs", str(inputs), "--engine", verdict.release, "--title", title, "--offline"]
        return main(["bundle", str(archive), *given, "--format", "tract", "-o", str(output)]) == 0
