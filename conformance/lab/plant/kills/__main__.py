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
from conformance.lab.plant.kills.session import CELLS, KINDS, WRONG, Killed, kill_one, resume
from conformance.lab.plant.trial import Trial, journal, plant_parser
from pytest_t2n.records.file import read_records
from pytest_t2n.records.index import completeness_of
from pytest_t2n.records.schema import Record, RecordError, cells_of

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
        for trial in journal(_kills(options, options.folder or Path(temporary)), options.json):
            trials.append(trial)
            print(f"{len(trials):3} {trial.kind} {trial.where}: {trial.found}", flush=True)
    arrived, bad = sum(trial.has_arrived for trial in trials), sum(not trial.is_right for trial in trials)
    print(f"{arrived} kills of {len(trials)} sessions, {bad} with a problem")
    return int(bool(bad) or arrived < options.kills)


def _kills(options: argparse.Namespace, root: Path) -> Iterator[Kill]:
    """Yield sessions of which a process gets a signal, until enough signals arrived."""
    drawn, arrived = random.Random(options.seed), 0
    for number in range(2 * options.kills):
        kind = KINDS[number % len(KINDS)]
        killed = kill_one(root / f"{number + 1}-{kind}", kind, drawn, options.tract)
        problems = problems_of(killed) + problems_of_resumed(killed, resume(killed, options.tract))
        where = f"after {killed.records} records" if killed.has_arrived else "did not arrive"
        description = f"{killed.signal.name} {where}: status {killed.status}"
        yield Kill(kind, description, RIGHT, "; ".join(problems) or RIGHT, killed.has_arrived)
        arrived += killed.has_arrived
        if arrived == options.kills:
            return


_BY_KILL = ("not_run", "crash", "timeout", "error", "oom")
"""Statuses that a kill may give to any cell."""


def problems_of(killed: Killed) -> list[str]:
    """Return what is wrong after the kill."""
    problems = [f"a process is left: {command}" for command in killed.left]
    if killed.status is None:
        problems.append("the session did not end")
    if killed.status == 0:
        problems.append("the session succeeded")
    if "INTERNALERROR" in killed.log:
        problems.append("an internal error of pytest")
    if not killed.file.exists():
        return problems
    torn: list[str] = []
    records = _records(killed.file, problems, torn)
    cells = cells_of(records)
    is_whole = len(cells) == CELLS and not torn and all(cell.status != "not_run" for cell in cells)
    if not is_whole and not completeness_of(records).notice:
        problems.append("the file reads as whole")
    return problems + _wrong(records)


def problems_of_resumed(killed: Killed, status: int) -> list[str]:
    """Return what is wrong after a resumed session, which ends with `status`."""
    problems = [] if status == 1 else [f"the resumed session ends with {status}, though a cell is wrong"]
    records = _records(killed.file, problems, problems)
    if notice := completeness_of(records).notice:
        problems.append(f"the resumed session is {notice}")
    statuses = {cell.status for cell in cells_of(records)} & set(_BY_KILL)
    if statuses and killed.kind == "controller":
        problems.append(f"the resumed session has cells of the status {', '.join(sorted(statuses))}")
    return problems + _wrong(records)


def _records(file: Path, problems: list[str], torn: list[str]) -> list[Record]:
    try:
        return read_records(file, torn.append)
    except RecordError as wrong:
        problems.append(f"its records cannot be read: {wrong}")
        return []


def _wrong(records: list[Record]) -> list[str]:
    expected = ["mismatch" if f"[{WRONG}-" in cell.nodeid else "pass" for cell in cells_of(records)]
    return [
        f"{cell.nodeid} is {cell.status}"
        for cell, want in zip(cells_of(records), expected, strict=True)
        if cell.status not in (want, *_BY_KILL)
    ]


if __name__ == "__main__":
    sys.exit(main())
