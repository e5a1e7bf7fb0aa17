"""Reduce planted faults, and write the table of how small they get.

python -m conformance.lab.plant.faults --count 200 --architectures 200 -o docs/reference/faults.md

Architectures need the libraries of the suite `models`.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from conformance.lab.machine import cpu_of_children
from conformance.lab.pages.render import render
from conformance.lab.plant.faults.architectures import planted_architectures
from conformance.lab.plant.faults.graphs import planted_graph
from conformance.lab.plant.faults.plants import FLOAT64, PLANTS, Plant
from conformance.lab.plant.trial import Trial, journal, plant_parser
from t2n_core.engine import resolve_engines
from t2n_core.engine.khronos.engine import KhronosEngine
from t2n_core.errors import InputError
from t2n_core.reduce.judge import AdaptiveEngine, Judge
from t2n_core.reduce.oracles import Float64Oracle, Oracle, ReleaseOracle
from t2n_core.reduce.program import Program
from t2n_core.reduce.reducer import reduce_program
from t2n_core.scratch import home_in_memory

SIZES = (40, 150)


Source = Callable[[int, Path], Iterator[tuple[str, Plant, Program]]]
"""(seed, folder) -> names, plants and graphs."""


def reduce_one(plant: Plant, program: Program, folder: Path) -> Result | None:
    """Return the reduction of a planted graph; None if that does not fail, as where a plant cannot be seen."""
    start = _processor_time()
    with ExitStack() as stack:
        engine = _engine(plant.release, stack)
        oracle = _oracle(plant, folder, stack)
        try:
            reduction = reduce_program(program, Judge(engine, oracle, folder, seconds=60.0))
        except InputError:
            return None
        again = Judge(engine, oracle, folder).first(reduction.program)
    seconds = _processor_time() - start  # after the end of the engines, when their time is known
    left, failed = reduction.program, str(reduction.failure.status)
    outcome = failed if again == reduction.failure else "another failure"
    figures = (program.operators, left.operators, left.elements, reduction.runs, seconds)
    return Result(plant.name, plant.release, failed, outcome, plant.elements, *figures)


def _processor_time() -> float:
    return time.process_time() + cpu_of_children()


def _engine(release: str, stack: ExitStack) -> AdaptiveEngine:
    engine = AdaptiveEngine(resolve_engines(release)[0])
    stack.callback(engine.close)
    return engine


def _oracle(plant: Plant, folder: Path, stack: ExitStack) -> Oracle:
    if plant.oracle == FLOAT64:
        return Float64Oracle(KhronosEngine.shared().interpreter, folder, 10.0)
    return ReleaseOracle(_engine(plant.oracle, stack), folder, 10.0)


def random_graphs(seed: int, folder: Path) -> Iterator[tuple[str, Plant, Program]]:
    """Yield names, plants and random graphs endlessly."""
    for number, plant in enumerate(itertools.cycle(PLANTS)):
        size = SIZES[number // len(PLANTS) % len(SIZES)]
        yield f"{size} statements", plant, planted_graph(seed + number, size, plant.make, plant.release)


def reductions(source: Source, count: int, seed: int) -> Iterator[Result]:
    """Yield the reductions of `count` graphs that fail."""
    number = 0
    with tempfile.TemporaryDirectory(dir=home_in_memory(64 << 20)) as folder:
        for name, plant, program in source(seed, Path(folder)) if count else ():
            result = reduce_one(plant, program, Path(folder))
            if result is None:
                print(f"    {plant.name} in {plant.release}, {name}: does not show", flush=True)
                continue
            number += 1
            small = "" if result.is_small else "  LARGE"
            print(
                f"{number:3} {plant.name} in {plant.release}, {name}: {result.before} -> {result.operators} operators, "
                f"{result.elements} elements, {result.runs} runs, {result.seconds:.1f} s{small}",
                flush=True,
            )
            yield result
            if number == count:
                return


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if fewer than 95 in 100 graphs of a kind get small, or one fails otherwise."""
    parser = plant_parser("faults", __doc__)
    parser.add_argument("--count", type=int, default=200, help="graphs that fail; default 200")
    parser.add_argument("--architectures", type=int, default=0, help="architectures that fail; default none")
    parser.add_argument("-o", "--output", type=Path, help="the page to write")
    options = parser.parse_args(arguments)
    in_graphs = reductions(random_graphs, options.count, options.seed)
    in_architectures = reductions(planted_architectures, options.architectures, options.seed)
    all_results = journal(itertools.chain(in_graphs, in_architectures), options.json)
    random = list(itertools.islice(all_results, options.count))
    built = list(all_results)
    if options.output:
        options.output.write_text(page(random, built, options.seed), encoding="utf-8")
    failed = False
    for name, results in (("random graphs", random), ("architectures", built)):
        small = sum(result.is_small for result in results)
        print(f"{small} of {len(results)} {name} are small")
        failed |= small < 0.95 * len(results) or not all(result.is_right for result in results)
    return int(failed)


MOST_OPERATORS = 3
SECONDS = {"crash": 60.0, "timeout": 60.0, "oom": 60.0}
"""Time that is allowed by the status of a failure; 10 for others."""


@dataclass(frozen=True, slots=True)
class Result(Trial):
    """The reduction of one graph with a fault of a release; what is left should fail as the whole did."""

    enough: int
    """Elements that are enough to show the fault."""
    before: int
    """Operators of the whole."""
    operators: int
    elements: int
    runs: int
    seconds: float

    @property
    def is_small(self) -> bool:
        return self.operators <= MOST_OPERATORS and self.elements <= self.enough

    @property
    def is_fast(self) -> bool:
        return self.seconds <= SECONDS.get(self.expected, 10.0)


def page(random: Sequence[Result], built: Sequence[Result], seed: int) -> str:
    """Return the page of the documentation; `built` are the results of architectures."""
    figures = {"median": statistics.median, "plants": PLANTS, "MOST_OPERATORS": MOST_OPERATORS}
    return render("faults", random=random, built=built, seed=seed, **figures)


if __name__ == "__main__":
    sys.exit(main())
