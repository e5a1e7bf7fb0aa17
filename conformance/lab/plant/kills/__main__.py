"""Kill controllers, workers and engines of sessions at random records, and resume the sessions.

python -m conformance.lab.plant.kills [--kills 100] [--seed 1] [--tract 0.23] [--folder DIR]

Prints one line a kill. Fails if a record is wrong, a file that is torn or lacks cells reads as whole, a process is
left, or a resumed session does not complete.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.lab.command import add_tract
from conformance.lab.plant.kills.judge import problems_of, problems_of_resumed
from conformance.lab.plant.kills.session import KINDS, kill_one, resume
from conformance.lab.plant.trial import Trial, journal, plant_parser

RIGHT: Final = "as it should be"


@dataclass(frozen=True, slots=True)
class Kill(Trial):
    """What became of a session, one of whose processes got a signal."""

    has_arrived: bool


def main(arguments: Sequence[str] | None = None) -> int:
    parser = plant_parser("kills", __doc__)
    parser.add_argument("--kills", type=int, default=100, help="signals that arrive; default 100")
    parser.add_argument("--folder", type=Path, help="where sessions run and stay; a temporary one without it")
    add_tract(parser, "0.23")
    options = parser.parse_args(arguments)
    trials: list[Kill] = []
    with tempfile.TemporaryDirectory() as temporary:
        for one in journal(_kills(options, options.folder or Path(temporary)), options.json):
            trials.append(one)
            print(f"{len(trials):3} {one.kind} {one.where}: {one.found}", flush=True)
    arrived, bad = sum(one.has_arrived for one in trials), sum(not one.is_right for one in trials)
    print(f"{arrived} kills of {len(trials)} sessions, {bad} with a problem")
    return int(bool(bad) or arrived < options.kills)


def _kills(options: argparse.Namespace, root: Path) -> Iterator[Kill]:
    """Yield sessions of which a process gets a signal, until enough signals arrived."""
    drawn, arrived = random.Random(options.seed), 0
    for number in range(2 * options.kills):
        kind = KINDS[number % len(KINDS)]
        killed = kill_one(root / f"{number + 1}-{kind}", kind, drawn, options.tract)
        found = problems_of(killed) + problems_of_resumed(killed, resume(killed, options.tract))
        where = f"after {killed.records} records" if killed.has_arrived else "did not arrive"
        place = f"{killed.signal.name} {where}: status {killed.status}"
        yield Kill(kind, place, RIGHT, "; ".join(found) or RIGHT, killed.has_arrived)
        arrived += killed.has_arrived
        if arrived == options.kills:
            return


if __name__ == "__main__":
    sys.exit(main())
