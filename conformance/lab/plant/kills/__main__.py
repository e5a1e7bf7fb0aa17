"""Kill controllers, workers and engines of sessions at random records, and resume the sessions.

python -m conformance.lab.plant.kills [--kills 100] [--seed 1] [--tract 0.23] [--folder DIR]

Prints one line a kill. Fails if a record is wrong, a file that is torn or lacks cells reads as whole, a process is
left, or a resumed session does not complete.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from conformance.lab.command import add_tract, command_parser
from conformance.lab.plant.kills.judge import problems_of, problems_of_resumed
from conformance.lab.plant.kills.session import KINDS, Killed, kill_one, resume


def main(arguments: Sequence[str] | None = None) -> int:
    parser = command_parser("conformance.lab.plant.kills", __doc__)
    parser.add_argument("--kills", type=int, default=100, help="signals that arrive; default 100")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where sessions run and stay; a temporary one without it")
    add_tract(parser, "0.23")
    options = parser.parse_args(arguments)
    drawn = random.Random(options.seed)
    bad = arrived = number = 0
    with tempfile.TemporaryDirectory() as temporary:
        root = options.folder or Path(temporary)
        while arrived < options.kills and number < 2 * options.kills:
            kind = KINDS[number % len(KINDS)]
            number += 1
            killed = kill_one(root / f"{number}-{kind}", kind, drawn, options.tract)
            arrived += killed.has_arrived
            found = problems_of(killed) + problems_of_resumed(killed, resume(killed, options.tract))
            bad += bool(found)
            print(_line(number, killed, found), flush=True)
    print(f"{arrived} kills of {number} sessions, {bad} with a problem")
    return int(bool(bad) or arrived < options.kills)


def _line(number: int, killed: Killed, found: Sequence[str]) -> str:
    where = f"after {killed.records} records" if killed.has_arrived else "did not arrive"
    words = "; ".join(found) or "as it should be"
    return f"{number:3} {killed.kind} {killed.signal.name} {where}: status {killed.status}: {words}"


if __name__ == "__main__":
    sys.exit(main())
