"""What the check says of the mutants of one archive, and how much each of them changes the outputs."""

from __future__ import annotations

import random
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from conformance.lab.plant.mutants.tamper import mutants_of
from conformance.lab.plant.trial import CAUGHT, Trial
from pytest_t2n.run.bundle_reader import read_samples
from pytest_t2n.run.bundles import CheckEntry
from t2n_core.check.sampling.draws import Array, Distribution, Draws
from t2n_core.engine.protocol import Engine
from t2n_core.errors import T2NError
from t2n_core.inference_target import TractNNEF
from t2n_core.nnef.reading.members import unpack_members
from t2n_core.parity.check import check_parity
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.parity.stage import PASSING, Status

SECONDS = 30.0
"""Time that one archive may take in the engine."""
_DRAWS = (Distribution.ALIKE, Distribution.ALIKE, Distribution.ALIKE, Distribution.SIGNED)
"""Inputs on which a mutant is compared with the archive that it was made from."""
REFUSED, PASSED = "refused", "passed"


@dataclass(frozen=True, slots=True)
class Verdict(Trial):
    """What became of one mutant: `refused` by the engine, `caught` by the values, or `passed`."""

    suite: str
    case: str
    change: float
    """Largest change of an output, as a share of the output's deviation over all inputs; nan where it does not run."""
    weak: bool
    """Whether the pass of the unchanged archive is weak."""


def judge_entry(bundle: Path, entry: CheckEntry, engine: Engine, seed: int) -> list[Verdict]:
    """Return the verdict of each mutant of an archive in a bundle; none if the archive itself does not pass."""
    samples, _ = read_samples(bundle, entry)
    archive, criteria, constant = bundle / entry.archive, Judgement(entry.tolerance), entry.constant_outputs
    request = CheckRequest(archive, samples, entry.output_names, criteria, SECONDS, constant_outputs=constant)

    def status(archive: Path) -> Status:
        return check_parity(engine, replace(request, archive=archive)).status

    return _judged(entry.case, archive, samples, status, engine, seed)


def judge_sizes(case: str, name: str, traced: Mapping[str, int], engine: Engine, seed: int) -> list[Verdict]:
    """Return the verdicts for a case of the suite `sizes`, which has a separate check and is in no bundle."""
    from conformance.checks.sizes import SECONDS_TO_RUN, accepts, check_result, export_of, samples_of

    with tempfile.TemporaryDirectory() as folder:
        target = TractNNEF(engine.version, check_io=False)
        try:
            result = export_of(name, tuple(traced.values())).to(target, Path(folder) / "archive.nnef.tgz")
        except T2NError:
            return []

        def status(archive: Path) -> Status:
            return check_result(replace(result, archive=archive), name, traced, SECONDS_TO_RUN).status

        samples = [sample for sample in samples_of(name) if accepts(result, sample.sizes)]
        return _judged(case, result.archive, samples, status, engine, seed) if samples else []


def _judged(
    case: str, archive: Path, samples: Sequence[Sample], status: Callable[[Path], Status], engine: Engine, seed: int
) -> list[Verdict]:
    seed = zlib.crc32(f"{seed} {case}".encode())
    suite = Path(case.partition("::")[0]).stem.removeprefix("test_")
    with _unpacked(archive) as folder:
        unchanged = status(folder)
        if unchanged not in PASSING:
            return []
        batches, before = _answers(engine, folder, samples, seed)
        verdicts = []
        for mutant in mutants_of(folder, random.Random(seed)):
            with mutant.planted(folder):
                status_of_mutant = status(folder)
                change = _change(before, _run(engine, folder, batches))
            word = {Status.PASS: PASSED, Status.WEAK: PASSED, Status.MISMATCH: CAUGHT}.get(status_of_mutant, REFUSED)
            weak = unchanged is Status.WEAK
            verdicts.append(Verdict(mutant.kind, mutant.where, CAUGHT, word, suite, case, change, weak))
    return verdicts


def _answers(
    engine: Engine, archive: Path, samples: Sequence[Sample], seed: int
) -> tuple[list[Sequence[Array]], list[tuple[Array, ...]]]:
    """Return inputs that no sample holds and with which the archive runs, and its outputs, as `_run` does."""
    draws, rng = Draws(samples[0].inputs, lambda _: False), np.random.default_rng(seed)
    shapes = [[array.shape for array in sample.inputs] for sample in samples[-2:]]
    inputs = [draws.draw(shapes[index % len(shapes)], rng, distribution) for index, distribution in enumerate(_DRAWS)]
    batches = [batch for batch in inputs if engine.run(archive, [batch], timeout=SECONDS).status == "ok"]
    return batches, list(_run(engine, archive, batches) or ())


def _run(engine: Engine, archive: Path, batches: Sequence[Sequence[Array]]) -> Sequence[tuple[Array, ...]] | None:
    """Return the outputs of each batch in a fresh State, then those in one State for all; None where one fails."""
    options: dict[str, Any] = {}
    if engine.kept_states is not None:
        options["calls"] = [(0, index) for index in range(len(batches))]
    reply = engine.run(archive, batches, timeout=SECONDS, **options) if batches else None
    if reply is None or reply.status != "ok":
        return None
    stateful_outputs = list(reply.outputs) if options else []
    for changed in reply.changed:
        stateful_outputs[changed.call] = changed.outputs
    return [*reply.outputs, *stateful_outputs]


def _change(before: Sequence[tuple[Array, ...]], after: Sequence[tuple[Array, ...]] | None) -> float:
    """Return the largest change of an output over its deviation; infinity for other shapes or types."""
    if after is None:
        return float("nan")
    largest = 0.0
    for index in range(len(before[0])):
        original = [outputs[index] for outputs in before]
        other = [outputs[index] if index < len(outputs) else None for outputs in after]
        if any(b is None or (a.shape, a.dtype) != (b.shape, b.dtype) for a, b in zip(original, other, strict=True)):
            return float("inf")
        numbers = np.concatenate([array.astype(np.float64).reshape(-1) for array in original])
        changed = np.concatenate([array.astype(np.float64).reshape(-1) for array in other if array is not None])
        finite = np.isfinite(numbers)
        if not np.array_equal(finite, np.isfinite(changed)):
            return float("inf")
        gap = np.abs(numbers[finite] - changed[finite]).max(initial=0.0)
        if gap:
            deviation = numbers[finite].std()
            largest = max(largest, float(gap / deviation) if deviation else float("inf"))
    return largest


@contextmanager
def _unpacked(archive: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        if archive.is_dir():
            shutil.copytree(archive, folder, dirs_exist_ok=True)
        else:
            unpack_members(archive, Path(folder), most=1 << 34)
        yield Path(folder)
