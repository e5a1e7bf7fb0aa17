"""Faults planted into each way from a model to a verdict: sessions, programs, bundles and `t2n export`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.lab.machine import ROOT
from conformance.lab.pages.tables import figures_table
from conformance.lab.processes import ENVIRONMENT, run_module

_TESTS: Final = """
import pytest
import torch
from torch import nn

from conformance.cases.several_archives.recognisers import ctc

class Two(nn.Module):
    def forward(self, a, b):
        return torch.tanh(a) - b, b * 2 + 0 * a

def two():
    return Two(), {"a": torch.randn(3, 4), "b": torch.randn(3, 4)}

@pytest.mark.nnef_export(output_names=["first", "second"], dynamic_axes={"a": {0: "N"}, "b": {0: "N"}})
def test_returned():
    return two()

@pytest.mark.nnef_export(output_names=["first", "second"])
def test_fixture(nnef_export):
    nnef_export(*two()).assert_parity()

@pytest.mark.nnef_program
def test_program():
    return ctc()
"""
_SESSION: Final = ("inputs exchanged", "outputs renamed", "another operator")


@dataclass(frozen=True, slots=True)
class Planted:
    """A fault on one path, and whether the command failed for it."""

    fault: str
    path: str
    status: int

    @property
    def is_caught(self) -> bool:
        return self.status == 1


def planted(tract: str) -> Iterator[Planted]:
    """Yield the result of each fault on each path, those without a fault first."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        tests = folder / "test_paths.py"
        tests.write_text(_TESTS)

        def run(fault: str, path: str, *words: object) -> Planted:
            return Planted(fault, path, _run(fault, *words))

        def session(fault: str, name: str, *more: str) -> Planted:
            options = ["-q", "-p", "no:cacheprovider", f"--t2n-tract={tract}", f"--rootdir={folder}", *more]
            return run(fault, name, "pytest", *options, f"{tests}::test_{name}")

        def export(fault: str) -> Planted:
            made = [f"{tests}:two", "-o", folder / "two.nnef.tgz", "--output-names", "first,second"]
            return run(fault, "t2n export", "t2n", "export", *made, "--tract", tract)

        def judge(fault: str, planted_in_workers: bool = False) -> Planted:
            """Judge the bundle, which starts processes of its own: a fault in them is planted as they start."""
            site = folder / fault.replace(" ", "_")
            site.mkdir()
            code = f"from conformance.lab.plant.mutants.planted import FAULTS\nFAULTS[{fault!r}]()\n"
            (site / "sitecustomize.py").write_text(code if planted_in_workers else "")
            given = ["--bundle", bundle, "--tract", tract, "--report", site / "report"]
            paths = {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}
            command = [sys.executable, "-m", "pytest_t2n.cli", "matrix", "run", *map(str, given)]
            environment = {**os.environ, **ENVIRONMENT, **paths}
            done = subprocess.run(command, env=environment, stdout=sys.stderr, check=False, timeout=600)
            return Planted(fault, "a bundle", done.returncode)

        for name in ("returned", "fixture", "program"):
            yield session("none", name)
        yield export("none")
        for fault in _SESSION:
            yield session(fault, "returned")
            yield session(fault, "fixture")
            yield export(fault)
        yield session("other glue", "program")
        bundle = folder / "bundle"
        yield session("none", "returned", f"--t2n-bundle={bundle}")
        yield judge("none")
        yield judge("other answers", planted_in_workers=True)
        for archive in (bundle / "archives").iterdir():
            archive.write_bytes(archive.read_bytes().replace(b"tanh(", b"atan("))
        yield judge("another archive")


def _run(fault: str, *words: object) -> int:
    done = run_module("conformance.lab.plant.mutants.planted", fault, *words, timeout=600)
    if done.returncode not in (0, 1):
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    return done.returncode


def run(tract: str) -> int:
    """Print the table; return 1 if a fault is not caught, or a path fails without one."""
    found: Sequence[Planted] = list(planted(tract))
    rows = [(one.fault, one.path, "caught" if one.is_caught else f"status {one.status}") for one in found]
    print(figures_table(("fault", "path", "found"), rows))
    return int(any(one.is_caught == (one.fault == "none") or one.status > 1 for one in found))
