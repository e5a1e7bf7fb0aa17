"""From suites to verdicts: export some cases of each, and judge the mutants of their archives."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from conformance.lab.plant.mutants.judge import Verdict, judge_entry, judge_sizes
from conformance.lab.processes import process_pool
from conformance.suites.test_sizes import CELLS
from pytest_t2n.run.bundle_reader import read_bundle
from pytest_t2n.run.bundles import CheckEntry
from t2n_core.engine import ResolvedEngine, engine_for, resolve_engines

SIZES = "sizes"
_FOLDER = Path("conformance") / "suites"


def _bundle_of(suites: Sequence[str], cases: int, seed: int, version: str, jobs: int, folder: Path) -> Path:
    """Export some cases of each suite, chosen by the seed, and return the bundle. Raises CalledProcessError."""
    files = [str(_FOLDER / f"test_{suite}.py") for suite in suites]
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--t2n-tract={version}"]
    listed = subprocess.run([*pytest, "--collect-only", *files], stdout=subprocess.PIPE, text=True, check=True).stdout
    nodeids = [line for line in listed.splitlines() if "::" in line]
    rng, chosen = random.Random(seed), []
    for file in files:
        candidates = [nodeid for nodeid in nodeids if nodeid.startswith(f"{file}::")]
        chosen += rng.sample(candidates, min(cases, len(candidates)))
    arguments = folder / "cases.txt"
    arguments.write_text("\n".join(chosen))
    bundle = folder / "bundle"
    # Cases that fail, as some are expected to, are in no bundle of passes, and get no mutants.
    subprocess.run([*pytest, f"-n{jobs}", f"--t2n-bundle={bundle}", f"@{arguments}"], check=False, stdout=sys.stderr)
    return bundle


def verdicts_of(suites: Sequence[str], cases: int, seed: int, version: str, jobs: int) -> Iterator[Verdict]:
    """Yield the verdicts of all mutants of some archives of each suite, chosen by the seed."""
    (engine,) = resolve_engines(version)
    bundled = [suite for suite in suites if suite != SIZES]
    with tempfile.TemporaryDirectory() as folder, process_pool(jobs, __name__) as pool:
        futures = []
        if bundled:
            bundle = _bundle_of(bundled, cases, seed, version, jobs, Path(folder))
            futures += [pool.submit(_judge, bundle, check, engine, seed) for check in read_bundle(bundle).checks]
        if SIZES in suites:
            chosen = random.Random(seed).sample(CELLS, min(cases, len(CELLS)))
            futures += [pool.submit(_judge_sizes, str(cell.id), *cell.values, engine, seed) for cell in chosen]
        for future in futures:
            yield from future.result()


def _judge(bundle: Path, check: CheckEntry, engine: ResolvedEngine, seed: int) -> list[Verdict]:
    return judge_entry(bundle, check, engine_for(engine), seed)


def _judge_sizes(case: str, name: Any, traced: Any, engine: ResolvedEngine, seed: int) -> list[Verdict]:
    return judge_sizes(f"{_FOLDER / 'test_sizes.py'}::test_sizes[{case}]", name, traced, engine_for(engine), seed)
