"""Plant faults in exported graphs and run statements that errata forbid, and print whom the check names.

python -m conformance.lab.plant.blame [--of exporter engine] [--count 100] [--seed 1]
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path

from conformance.lab.plant.blame import engine, exporter
from conformance.lab.plant.blame.trial import Blame
from conformance.lab.plant.trial import by_kind, counts_table, journal, plant_parser
from t2n_core.engine import engine_for, resolve_engines
from t2n_core.engine.protocol import Engine

SIDES = ("exporter", "engine")
NAMES = ("exporter", "engine", "both", "nobody")


def table_of(faults: Sequence[Blame]) -> str:
    """Return a table of the sides of faults and the authors that the check names."""
    columns: dict[str, Callable[[Sequence[Blame]], object]] = {"seen": len}
    for name in NAMES:
        columns[f"named: {name}"] = partial(_named, name)
    return counts_table(by_kind(faults, SIDES)[:-1], columns, "the fault is of")


def _named(name: str, faults: Sequence[Blame]) -> int:
    return sum(fault.found == name for fault in faults)


def seen(side: str, count: int, seed: int, folder: Path) -> Iterator[Blame]:
    """Yield `count` faults of a side that the check sees."""
    faults: Iterator[Blame]
    if side == "exporter":
        every = [fault for fault in exporter.faults(folder, seed) if fault.found]
        faults = iter(random.Random(seed).sample(every, min(count, len(every))))
    else:
        releases = engine.RELEASES
        faults = chain(engine.of_quirks(releases, folder), engine.of_hazards(releases, _engine, folder))
    return islice((fault for fault in faults if fault.found), count)


def _engine(release: str) -> Engine:
    return engine_for(resolve_engines(release)[0])


def main() -> int:
    parser = plant_parser("blame", __doc__)
    parser.add_argument("--of", nargs="*", default=SIDES, choices=SIDES)
    parser.add_argument("--count", type=int, default=100, help="faults of each side")
    options = parser.parse_args()
    faults: list[Blame] = []
    for side in options.of:
        with tempfile.TemporaryDirectory() as folder:
            faults += seen(side, options.count, options.seed, Path(folder))
    faults = list(journal(faults, options.json))
    print(table_of(faults))
    wrong = [fault for fault in faults if not fault.is_right]
    for fault in wrong:
        print(f"\n{fault.kind}, named {fault.found}: {fault.where}", end="")
    print()
    return 1 if len(wrong) > len(faults) // 100 else 0


if __name__ == "__main__":
    sys.exit(main())
