"""Plant faults into each way from a model to a verdict, and print which sessions and commands fail for them.

python -m conformance.lab.plant.paths [--tract 0.23]

Fails if a fault is not caught, or a path fails without one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from conformance.lab.command import add_tract
from conformance.lab.machine import ROOT
from conformance.lab.pages.tables import figures_table
from conformance.lab.plant.trial import CAUGHT, Trial, journal, plant_parser
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


def trial_of(fault: str, path: str, status: int) -> Trial:
    """Return what became of a fault on a path, by the status with which its command ended."""
    outcome = {0: "passed", 1: CAUGHT}.get(status, f"status {status}")
    return Trial(fault, path, "passed" if fault == "none" else CAUGHT, outcome)


def planted(tract: str) -> Iterator[Trial]:
    """Yield the result of each fault on each path, those without a fault first."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        tests = folder / "test_paths.py"
        tests.write_text(_TESTS)

        def run(fault: str, path: str, *words: object) -> Trial:
            return trial_of(fault, path, _run(fault, *words))

        def session(fault: str, name: str, *more: str) -> Trial:
            options = ["-q", "-p", "no:cacheprovider", f"--t2n-tract={tract}", f"--rootdir={folder}", *more]
            return run(fault, name, "pytest", *options, f"{tests}::test_{name}")

        def export(fault: str) -> Trial:
            made = [f"{tests}:two", "-o", folder / "two.nnef.tgz", "--output-names", "first,second"]
            return run(fault, "t2n export", "t2n", "export", *made, "--tract", tract)

        def judge(fault: str, planted_in_workers: bool = False) -> Trial:
            """Judge the bundle, which starts separate processes: a fault in them is planted as they start."""
            site = folder / fault.replace(" ", "_")
            site.mkdir()
            code = f"from conformance.lab.plant.paths.planted import FAULTS\nFAULTS[{fault!r}]()\n"
            (site / "sitecustomize.py").write_text(code if planted_in_workers else "")
            options = ["--bundle", bundle, "--tract", tract, "--report", site / "report"]
            paths = {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}
            command = [sys.executable, "-m", "pytest_t2n.cli", "matrix", "run", *map(str, options)]
            environment = {**os.environ, **ENVIRONMENT, **paths}
            done = subprocess.run(command, env=environment, stdout=sys.stderr, check=False, timeout=600)
            return trial_of(fault, "a bundle", done.returncode)

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
    done = run_module("conformance.lab.plant.paths.planted", fault, *words, timeout=600)
    if done.returncode not in (0, 1):
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    return done.returncode


def main() -> int:
    """Print the table; return 1 if something else became of a fault than should."""
    parser = plant_parser("paths", __doc__, draws=False)
    add_tract(parser, "0.23")
    options = parser.parse_args()
    trials = list(journal(planted(options.tract), options.json))
    print(figures_table(("fault", "path", "found"), [(trial.kind, trial.where, trial.found) for trial in trials]))
    return int(not all(trial.is_right for trial in trials))


if __name__ == "__main__":
    sys.exit(main())
