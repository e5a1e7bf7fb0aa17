"""Judge the models of many seeds, in this process or in several.

The functions are not in `__main__`, since multiprocessing's processes do not import a package's `__main__`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from functools import partial
from typing import Any

from conformance.lab.fuzz.generator import CHAINS, Plan, generate
from conformance.lab.fuzz.judge import judge
from conformance.lab.fuzz.mending import judge_mended
from conformance.lab.fuzz.program import Program
from conformance.lab.fuzz.shrink import shrink
from conformance.lab.fuzz.snippet import snippet
from conformance.lab.fuzz.states.judge import judge_states
from conformance.lab.fuzz.states.program import StateProgram, generate_state
from conformance.lab.fuzz.verdict import UNGUARDED, WRONG, Verdict
from conformance.lab.processes import process_pool
from t2n_core.engine import ResolvedEngine
from t2n_core.inference_target import TractNNEF


@dataclass(frozen=True, slots=True)
class Judged:
    """One model in all engines."""

    seed: int
    mended: int
    """How many times refused steps were removed before."""
    program: Program | StateProgram
    verdicts: tuple[Verdict, ...]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "mended": self.mended,
            "operators": self.program.operators,
            "seconds": round(self.seconds, 3),
            "verdicts": [verdict.as_json() for verdict in self.verdicts],
        }


def judge_seed(seed: int, engines: Sequence[ResolvedEngine], rounds: int, plan: Plan = CHAINS) -> list[Judged]:
    """Generate the model of a seed and judge it, then again without its refused steps."""
    logging.disable(logging.ERROR)  # torch.export talks of symbols
    start, results = time.monotonic(), []
    for mended, (program, verdicts) in enumerate(judge_mended(generate(seed, plan), targets_of(engines), rounds)):
        results.append(Judged(seed, mended, program, tuple(verdicts), time.monotonic() - start))
        start = time.monotonic()
    return results


def judge_state_seed(seed: int, engines: Sequence[ResolvedEngine]) -> list[Judged]:
    """Generate the model with state of a seed, and judge it."""
    logging.disable(logging.ERROR)
    start, program = time.monotonic(), generate_state(seed)
    verdicts = judge_states(program, targets_of(engines))
    return [Judged(seed, 0, program, tuple(verdicts), time.monotonic() - start)]


def targets_of(engines: Sequence[ResolvedEngine]) -> list[TractNNEF]:
    """Return one target per engine; nothing is checked while exporting."""
    return [TractNNEF(engine.version, engine=engine, check_io=False) for engine in engines]


def shrunk(program: Program, verdict: Verdict, engines: Sequence[ResolvedEngine], seconds: float) -> str:
    """Return the smallest model found that fails like this one in this engine, as the text of a test."""
    (engine,) = (candidate for candidate in engines if verdict.engine.endswith(f" {candidate.version}"))
    targets = targets_of([engine])
    last = verdict

    def fails(candidate: Program) -> Verdict | None:
        nonlocal last
        (trial,) = judge(candidate, targets)
        same = trial.status == verdict.status and (trial.status in (WRONG, UNGUARDED) or trial.cause == verdict.cause)
        if same:
            last = trial
        return trial if same else None

    small = shrink(program, fails, seconds)
    (result,) = judge(small, targets)
    return snippet(small, result if result.status == verdict.status else last)


def judge_all(
    seeds: Sequence[int], engines: Sequence[ResolvedEngine], jobs: int, rounds: int, plan: Plan | None = CHAINS
) -> Iterator[Judged]:
    """Yield the models of all seeds as they are judged, in the order of the seeds if `jobs` is 1.

    They are models with state where there is no plan.
    """
    judge_one = partial(judge_seed, rounds=rounds, plan=plan) if plan else judge_state_seed
    if jobs == 1:
        for seed in seeds:
            yield from judge_one(seed, engines)
        return
    with process_pool(jobs, __name__) as pool:
        for done in as_completed([pool.submit(judge_one, seed, engines) for seed in seeds]):
            yield from done.result()
