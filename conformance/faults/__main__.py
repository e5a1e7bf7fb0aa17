"""Reduce planted faults, and write the table of how small they get.

python -m conformance.faults --count 200 -o docs/reference/faults.md
"""

from __future__ import annotations

import argparse
import itertools
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from conformance.faults.graphs import planted
from conformance.faults.plants import FLOAT64, PLANTS, Plant
from t2n_core.engine import resolve_engines
from t2n_core.engine.khronos.engine import KhronosEngine
from t2n_core.errors import InputError
from t2n_core.reduce.judge import AdaptiveEngine, Judge
from t2n_core.reduce.oracles import Float64Oracle, Oracle, ReleaseOracle
from t2n_core.reduce.reducer import reduce_program

SIZES = (40, 150)
MOST_OPERATORS = 3
SECONDS = {"crash": 60.0, "timeout": 60.0, "oom": 60.0}
"""Time that is allowed by the status of a failure; 10 for others."""
_FAST = Path("/dev/shm")
_COLUMNS = ("operators", "elements", "runs", "seconds")


@dataclass(frozen=True, slots=True)
class Result:
    """The reduction of one graph."""

    plant: Plant
    before: int
    status: str
    operators: int
    elements: int
    runs: int
    seconds: float
    alike: bool
    """True if what is left fails as the whole did."""

    @property
    def is_small(self) -> bool:
        return self.operators <= MOST_OPERATORS and self.elements <= self.plant.elements

    @property
    def is_fast(self) -> bool:
        return self.seconds <= SECONDS.get(self.status, 10.0)


def reduce_one(plant: Plant, seed: int, size: int, folder: Path) -> Result | None:
    """Return the reduction of a planted graph; None if that does not fail, as where a plant cannot be seen."""
    program = planted(seed, size, plant.make, plant.release)
    start = _processor_time()
    with ExitStack() as stack:
        engine = _engine(plant.release, stack)
        oracle = _oracle(plant, folder, stack)
        try:
            found = reduce_program(program, Judge(engine, oracle, folder, seconds=60.0))
        except InputError:
            return None
        again = Judge(engine, oracle, folder).first(found.program)
    seconds = _processor_time() - start  # behind the end of the engines, which is when their time is known
    left, alike = found.program, again == found.failure
    failed = found.failure.status
    return Result(plant, program.operators, failed, left.operators, left.elements, found.runs, seconds, alike)


def _processor_time() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _engine(release: str, stack: ExitStack) -> AdaptiveEngine:
    engine = AdaptiveEngine(resolve_engines(release)[0])
    stack.callback(engine.close)
    return engine


def _oracle(plant: Plant, folder: Path, stack: ExitStack) -> Oracle:
    if plant.oracle == FLOAT64:
        return Float64Oracle(KhronosEngine.shared().interpreter, folder, 10.0)
    return ReleaseOracle(_engine(plant.oracle, stack), folder, 10.0)


def run(count: int, seed: int) -> list[Result]:
    """Return the reductions of `count` graphs that fail."""
    found: list[Result] = []
    with tempfile.TemporaryDirectory(dir=_FAST if _FAST.is_dir() else None) as folder:
        for number, plant in enumerate(itertools.cycle(PLANTS)):
            if len(found) >= count:
                break
            one = reduce_one(plant, seed + number, SIZES[number // len(PLANTS) % len(SIZES)], Path(folder))
            if one is not None:
                found.append(one)
                small = "" if one.is_small else "  LARGE"
                print(
                    f"{len(found):3} {plant.name} in {plant.release}: {one.before} -> {one.operators} operators, "
                    f"{one.elements} elements, {one.runs} runs, {one.seconds:.1f} s{small}",
                    flush=True,
                )
    return found


def table(results: Sequence[Result], seed: int) -> str:
    """Return the page of the documentation."""
    small, fast, alike = (sum(getattr(one, name) for one in results) for name in ("is_small", "is_fast", "alike"))
    text = f"""# Planted faults

How small the [reducer](../how-to/upstream.md#the-smallest-graph) makes what fails: random graphs of 40 and 150
statements, each with one statement in its middle that a release computes wrongly, refuses or dies of. Written by
`python -m conformance.faults --count {len(results)} --seed {seed} -o docs/reference/faults.md`.

Of {len(results)} graphs {small} came down to at most {MOST_OPERATORS} operators and 64 elements (160 for `mul`
and `div`, whose bad kernel is not taken below 132); {alike} of what is left fail as the whole did;
{fast} took at most 10 seconds, or 60 where the engine dies. Seconds are those of one core: engines and their start
are in them, and the interpreter that computes in float64 is not. A graph can fail of something else than
what was planted.

| fault | tract | failure | graphs | small | {" | ".join(f"{one}, median (most)" for one in _COLUMNS)} |
|{"---|" * (5 + len(_COLUMNS))}"""
    lines = [text]
    for plant in PLANTS:
        mine = [one for one in results if one.plant is plant]
        if mine:
            lines.append(_row(plant, mine))
    return "\n".join([*lines, ""])


def _row(plant: Plant, mine: Sequence[Result]) -> str:
    def both(values: Iterable[float], form: str = ".0f") -> str:
        known = list(values)
        return f"{statistics.median(known):{form}} ({max(known):{form}})"

    statuses = ", ".join(sorted({one.status for one in mine}))
    cells = [
        plant.name,
        plant.release,
        statuses,
        str(len(mine)),
        str(sum(one.is_small for one in mine)),
        both(one.operators for one in mine),
        both(one.elements for one in mine),
        both(one.runs for one in mine),
        both((one.seconds for one in mine), ".1f"),
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if fewer than 95 in 100 graphs get small, or one fails otherwise than before."""
    parser = argparse.ArgumentParser(prog="python -m conformance.faults", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="graphs that fail; default 200")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, help="the page to write")
    options = parser.parse_args(arguments)
    results = run(options.count, options.seed)
    if options.output:
        options.output.write_text(table(results, options.seed), encoding="utf-8")
    small = sum(one.is_small for one in results)
    print(f"{small} of {len(results)} are small")
    return int(small < 0.95 * len(results) or not all(one.alike for one in results))


if __name__ == "__main__":
    sys.exit(main())
