"""Judge the models of many seeds, in this process or in several.

The functions are not in `__main__`, since multiprocessing does not import that of a package in its processes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from typing import Any

from conformance.fuzz.generator import CHAINS, Plan, generate
from conformance.fuzz.judge import judge
from conformance.fuzz.mending import judge_mended
from conformance.fuzz.program import Program
from conformance.fuzz.shrink import shrink
from conformance.fuzz.snippet import snippet
from conformance.fuzz.verdict import UNGUARDED, WRONG, Verdict
from conformance.lab.processes import process_pool
from t2n_core.engine import ResolvedEngine
from t2n_core.inference_target import TractNNEF


@dataclass(frozen=True, slots=True)
class Judged:
    """One model in all engines."""

    seed: int
    mended: int
    """How many times refused steps were removed before."""
    program: Program
    verdicts: tuple[Verdict, ...]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "mended": self.mended,
            "operators": sum(step.is_tensor for step in self.program.steps),
            "seconds": round(self.seconds, 3),
            "verdicts": [verdict.as_json() for verdict in self.verdicts],
        }


def judge_seed(seed: int, engines: Sequence[ResolvedEngine], rounds: int, plan: Plan = CHAINS) -> list[Judged]:
    """Generate the model of a seed and judge it, then again without its refused steps."""
    logging.disable(logging.ERROR)  # torch.export talks of symbols
    start, found = time.monotonic(), []
    for mended, (program, verdicts) in enumerate(judge_mended(generate(seed, plan), targets_of(engines), rounds)):
        found.append(Judged(seed, mended, program, tuple(verdicts), time.monotonic() - start))
        start = time.monotonic()
    return found


def targets_of(engines: Sequence[ResolvedEngine]) -> list[TractNNEF]:
    """Return one target per engine; nothing is checked while exporting."""
    return [TractNNEF(one.version, engine=one, check_io=False) for one in engines]


def shrunk(program: Program, verdict: Verdict, engines: Sequence[ResolvedEngine], seconds: float) -> str:
    """Return the smallest model found that fails like this one in this engine, as the text of a test."""
    (engine,) = (one for one in engines if verdict.engine.endswith(f" {one.version}"))
    targets = targets_of([engine])
    last = verdict

    def fails(candidate: Program) -> Verdict | None:
        nonlocal last
        (found,) = judge(candidate, targets)
        same = found.status == verdict.status and (found.status in (WRONG, UNGUARDED) or found.cause == verdict.cause)
        if same:
            last = found
        return found if same else None

    small = shrink(program, fails, seconds)
    (found,) = judge(small, targets)
    return snippet(small, found if found.status == verdict.status else last)


def judge_all(
    seeds: Sequence[int], engines: Sequence[ResolvedEngine], jobs: int, rounds: int, plan: Plan = CHAINS
) -> Iterator[Judged]:
    """Yield the models of all seeds as they are judged, in the order of the seeds if `jobs` is 1."""
    if jobs == 1:
        for seed in seeds:
            yield from judge_seed(seed, engines, rounds, plan)
        return
    with process_pool(jobs, __name__) as pool:
        for done in as_completed([pool.submit(judge_seed, seed, engines, rounds, plan) for seed in seeds]):
            yield from done.result()
