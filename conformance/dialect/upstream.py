"""Cases for the engine's repository: the smallest one of each operator that a release gets wrong, by reason."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from conformance.dialect.judge import Verdict
from conformance.dialect.known import explanation
from conformance.dialect.session import smallest
from pytest_t2n.cli import main
from t2n_core.dialect.arrays import Array
from t2n_core.nnef.reading.archive import read_archive


def write_upstream_cases(verdicts: Iterable[Verdict], release: str, folder: Path) -> list[str]:
    """Write the cases that a release computes wrongly or dies of into a folder, and return their names.

    A case has the form of tract's `harness/nnef-test-cases`, with the text of an issue next to it. A case that does not
    fail again, as with uninitialised memory, is left out.
    """
    bad = [verdict for verdict in verdicts if verdict.release == release and verdict.status in ("wrong", "crashed")]
    names: list[str] = []
    seen = Counter[str]()
    for verdict in smallest(bad):
        cause = explanation(verdict)
        seen[verdict.case.op] += 1
        name = f"{verdict.case.op}-{seen[verdict.case.op]}".replace("_", "-")
        title = f"`{verdict.case.op}` in tract {release}: {cause.reason if cause else verdict.reason}"
        if write_case(verdict.case.write, verdict.case.inputs(), folder / name, release, title):
            names.append(name)
    return names


def write_case(write: Callable[[Path], Path], arrays: Sequence[Array], output: Path, release: str, title: str) -> bool:
    """Return whether an archive with these inputs fails in a release, and write its case then."""
    with tempfile.TemporaryDirectory(prefix="t2n-upstream-") as scratch:
        archive, inputs = write(Path(scratch) / output.name), Path(scratch) / "inputs.npz"
        names = read_archive(archive).document.inputs
        np.savez(inputs, **dict(zip(names, arrays, strict=True)))  # type: ignore[arg-type]
        options = ["--inputs", str(inputs), "--engine", release, "--title", title, "--offline"]
        return main(["bundle", str(archive), *options, "--format", "tract", "-o", str(output)]) == 0
