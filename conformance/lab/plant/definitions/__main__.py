"""Change the functions that define the dialect's operators, and print what their tests catch.

python -m conformance.lab.plant.definitions [TEXT …] [--jobs 2]

Takes the functions whose module or name has one of the texts. Fails if fewer than 98 % of the mutants are caught.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

import torch

from conformance.lab.plant.definitions.mutate import KINDS
from conformance.lab.plant.definitions.run import EQUAL, Verdict, verdicts_of
from conformance.lab.plant.trial import by_kind, counts_table, journal, plant_parser, share

LEAST: Final = 0.98
"""Share of the mutants that are not equivalent which the tests have to catch."""


def table_of(verdicts: Sequence[Verdict]) -> str:
    """Return a table with a line for each kind."""
    columns: dict[str, Callable[[Sequence[Verdict]], object]] = {
        "mutants": len,
        "equivalent": lambda these: sum(verdict.expected == EQUAL for verdict in these),
        "caught": lambda these: sum(verdict.is_right for verdict in these),
        "share": lambda these: share(sum(verdict.is_right for verdict in these), len(_counted(these))),
    }
    return counts_table(by_kind(verdicts, KINDS), columns)


def _counted(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.expected != EQUAL]


def main() -> int:
    """Print the table and the survivors; return 1 if there are too many."""
    parser = plant_parser("definitions", __doc__, draws=False)
    parser.add_argument("texts", nargs="*", help="of modules and functions; all without one")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the process is forked
    session = verdicts_of(lambda key: not options.texts or any(text in key for text in options.texts), options.jobs)
    verdicts = list(journal(session.verdicts.values(), options.json))
    print(table_of(verdicts))
    survivors = [verdict for verdict in _counted(verdicts) if not verdict.is_right]
    for survivor in survivors:
        print(f"\nline {survivor.line}, {survivor.tests} tests: {survivor.where}", end="")
    for nodeid in session.failed:
        print(f"\nfailed without a mutant: {nodeid}", end="")
    print()
    return 0 if not session.failed and len(survivors) <= (1 - LEAST) * len(_counted(verdicts)) else 1


if __name__ == "__main__":
    sys.exit(main())
