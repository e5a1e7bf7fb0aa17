"""A bundle of graphs that a model did not have to be exported for."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pytest_t2n.records.cell import Cell, SelectedEngine
from pytest_t2n.records.platform import this_platform
from pytest_t2n.run.bundles import CheckInputs, write_check, write_manifest
from t2n_core.level import TractCheckTolerance
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample

_GRAPH = """version 1.0;

extension tract_registry tract_core;

graph net(x) -> (y)
{
    x = external(shape=[2, 3]);
    %s
}
"""
_SMALL = ("x * 2.0", "x * 2.01", "x + x", "nothing(x)", "x + relu(x) - relu(neg(x))")
"""Right, wrong, right, refused, right."""


def write_bundle(folder: Path, cases: int, statements: str | None = None) -> None:
    """Write a bundle of graphs with these statements, which compute `y = x * 2`, or with short ones, some wrong."""
    engine = SelectedEngine("tract", "0.21.19", "0.21.19")
    drawn = np.random.default_rng(3).standard_normal((2, 2, 3)).astype(np.float32)
    samples = [Sample((x,), (x * 2,), {}) for x in drawn]
    entries = []
    with TemporaryDirectory() as scratch:
        for number in range(cases):
            small = f"y = {_SMALL[number % len(_SMALL)]};"
            text = (_GRAPH % (statements or small) + f"# {number}\n").encode()
            archive = Path(scratch, f"{number}.tar")
            with tarfile.open(archive, "w") as tar:
                entry = tarfile.TarInfo("graph.nnef")
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text))
            cell = Cell(f"t.py::t[{number}-{engine.id}]", f"t.py::t[{number}]", engine)
            request = CheckRequest(archive, samples, ["y"], Judgement(TractCheckTolerance.CLOSE))
            entries.append(write_check(folder, CheckInputs(cell, request)))
    write_manifest(folder, entries, this_platform())
