"""Plant faults in exported graphs and run statements that errata forbid, and print whom the check names.

python -m conformance.lab.plant.blame [--of exporter engine] [--count 100] [--seed 1]
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from conformance.lab.command import command_parser
from conformance.lab.pages.tables import figures_table
from conformance.lab.plant.blame import engine, exporter
from conformance.lab.plant.blame.fault import Fault
from t2n_core.engine import engine_for, resolve_engines
from t2n_core.engine.protocol import Engine

SIDES = ("exporter", "engine")
NAMES = ("exporter", "engine", "both", "nobody")


def table_of(faults: Iterable[Fault]) -> str:
    """Return a table of the sides of faults and the authors that the check names."""
    counts = Counter((fault.side, fault.author) for fault in faults)
    rows = [
        (side, str(sum(counts[side, name] for name in NAMES)), *(str(counts[side, name]) for name in NAMES))
        for side in SIDES
    ]
    return figures_table(("the fault is of", "seen", *(f"named: {name}" for name in NAMES)), rows)


def seen(side: str, count: int, seed: int, folder: Path) -> Iterator[Fault]:
    """Yield `count` faults of a side that the check sees."""
    faults: Iterator[Fault]
    if side == "exporter":
        every = [fault for fault in exporter.faults(folder, seed) if fault.is_seen]
        faults = iter(random.Random(seed).sample(every, min(count, len(every))))
    else:
        releases = engine.RELEASES
        faults = chain(engine.of_quirks(releases, folder), engine.of_hazards(releases, _engine, folder))
    return islice((fault for fault in faults if fault.is_seen), count)


def _engine(release: str) -> Engine:
    return engine_for(resolve_engines(release)[0])


def main() -> int:
    parser = command_parser("conformance.lab.plant.blame", __doc__)
    parser.add_argument("--of", nargs="*", default=SIDES, choices=SIDES)
    parser.add_argument("--count", type=int, default=100, help="faults of each side")
    parser.add_argument("--seed", type=int, default=1, help="which changes")
    options = parser.parse_args()
    faults: list[Fault] = []
    for side in options.of:
        with tempfile.TemporaryDirectory() as folder:
            faults += seen(side, options.count, options.seed, Path(folder))
    print(table_of(faults))
    wrong = [fault for fault in faults if fault.author != fault.side]
    for fault in wrong:
        print(f"\n{fault.side}, named {fault.author}: {fault.name} on {fault.release}", end="")
    print()
    return 1 if len(wrong) > len(faults) // 100 else 0


if __name__ == "__main__":
    sys.exit(main())
