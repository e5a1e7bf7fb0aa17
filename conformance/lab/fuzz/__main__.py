"""Check random models in engines, and shrink failing models.

python -m conformance.lab.fuzz [--decisions | --running | --states] --seed N --count M --tract 0.21,0.23 [--shrink]
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from conformance.lab.command import add_tract, command_parser
from conformance.lab.fuzz.generator import CHAINS, DECISIONS, RUNNERS, generate
from conformance.lab.fuzz.program import Program
from conformance.lab.fuzz.session import Judged, judge_all, shrunk
from conformance.lab.fuzz.states.program import generate_state
from conformance.lab.fuzz.verdict import FAILURES, REFUSED, STATUSES, UNGUARDED, WRONG
from conformance.lab.rows import RowFile
from t2n_core.engine import ResolvedEngine, resolve_engines

_COLUMNS = 160
"""Width of the printed table, in a file too."""


def print_summary(judged: Sequence[Judged], seconds: float) -> None:
    """Verdicts by engine, then causes by how often they are met."""
    models = sum(not result.mended for result in judged)
    print(f"\n{models} models, {len(judged)} with those that were mended, in {seconds:.0f} s")
    by_engine: dict[str, Counter[str]] = defaultdict(Counter)
    causes: dict[tuple[str, str], dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for result in judged:
        for verdict in result.verdicts:
            by_engine[verdict.engine][verdict.status] += 1
            if verdict.failed or verdict.status == REFUSED:
                causes[verdict.status, verdict.cause][result.seed].append(verdict.engine.split()[-1])
    shown = [status for status in STATUSES if any(counts[status] for counts in by_engine.values())]
    table = Table("engine", *(Column(status, justify="right") for status in shown), box=None)
    for engine, counts in by_engine.items():
        table.add_row(engine, *(str(counts[status]) for status in shown))
    Console(width=_COLUMNS).print(table)
    for status in STATUSES:
        groups = {cause: seeds for (s, cause), seeds in causes.items() if s == status}
        for cause, seeds in sorted(groups.items(), key=lambda item: -len(item[1])):
            engines = sorted({engine for versions in seeds.values() for engine in versions})
            print(f"\n{status}, {len(seeds)} models ({', '.join(engines)}): {cause}")
            print(f"    seeds {', '.join(map(str, sorted(seeds)[:12]))}")


def main() -> int:
    parser = command_parser("conformance.lab.fuzz", __doc__)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--decisions", action="store_true", help="small models that decide on sizes")
    kinds.add_argument("--running", action="store_true", help="running operators along axes of up to 100,000 elements")
    kinds.add_argument("--states", action="store_true", help="models with a state of any objects, called in a row")
    parser.add_argument("--seed", type=int, default=1, help="of the first model; the others follow")
    parser.add_argument("--count", type=int, default=20, help="how many models")
    add_tract(parser)
    parser.add_argument("--mend", type=int, default=3, metavar="ROUNDS", help="take out what is refused, so often")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--shrink", action="store_true", help="print a small model for every failure")
    parser.add_argument("--shrink-refused", action="store_true", help="and one for every kind of refusal")
    parser.add_argument("--shrink-seconds", type=float, default=60.0, help="that one model may take")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what became of every model, one a line")
    parser.add_argument("--show", action="store_true", help="print the models and do nothing else")
    parser.add_argument("--offline", action="store_true", help="engines of the cache only")
    arguments = parser.parse_args()
    plan = DECISIONS if arguments.decisions else RUNNERS if arguments.running else CHAINS
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    if arguments.show:
        for seed in seeds:
            if arguments.states:
                print(f"# seed {seed}\n{generate_state(seed).source}")
                continue
            program = generate(seed, plan)
            print(f"# seed {seed}, by {program.way} at {dict(program.example)}, {program.axes}\n{program.source}")
        return 0
    engines = resolve_engines(arguments.tract, offline=arguments.offline)
    start, results = time.monotonic(), []
    rows = RowFile(arguments.json, anew=True)
    for result in judge_all(seeds, engines, arguments.jobs, arguments.mend, None if arguments.states else plan):
        results.append(result)
        rows.add(result.as_json())
        for verdict in result.verdicts:
            if verdict.failed:
                print(
                    f"seed {result.seed}: {verdict.status} on {verdict.engine}: {verdict.message.splitlines()[0][:160]}"
                )
    print_summary(results, time.monotonic() - start)
    if arguments.shrink or arguments.shrink_refused:
        statuses = FAILURES if arguments.shrink else ()
        _print_shrunk(
            results, engines, (*statuses, REFUSED) if arguments.shrink_refused else statuses, arguments.shrink_seconds
        )
    return int(any(verdict.failed for result in results for verdict in result.verdicts))


def _print_shrunk(
    results: Sequence[Judged], engines: Sequence[ResolvedEngine], statuses: Sequence[str], seconds: float
) -> None:
    seen: set[tuple[str, str]] = set()
    for result in results:
        for verdict in result.verdicts:
            kind = (verdict.status, verdict.cause if verdict.status not in (WRONG, UNGUARDED) else str(result.seed))
            if verdict.status in statuses and kind not in seen:
                seen.add(kind)
                program = result.program
                has_steps = isinstance(program, Program)
                text = shrunk(program, verdict, engines, seconds) if has_steps else program.source
                print(f"\n{'-' * 100}\n{text}")


if __name__ == "__main__":
    sys.exit(main())
