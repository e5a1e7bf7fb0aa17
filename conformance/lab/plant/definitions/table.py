"""The table of the mutants of definitions: how many of each kind their tests catch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from conformance.lab.pages.tables import figures_table
from conformance.lab.plant.definitions.equivalents import EQUIVALENT
from conformance.lab.plant.definitions.mutate import KINDS
from conformance.lab.plant.definitions.run import Verdict, verdicts_of

LEAST: Final = 0.98
"""Share of the mutants that are not equivalent which the tests have to catch."""


def table_of(verdicts: Sequence[Verdict]) -> str:
    """Return a table with a line for each kind."""
    rows = []
    for name, found in [*((kind, [v for v in verdicts if v.mutant.kind == kind]) for kind in KINDS), ("all", verdicts)]:
        counted = proper(found)
        caught = sum(one.caught for one in counted)
        share = f"{caught / len(counted):.1%}" if counted else ""
        rows.append((name, str(len(found)), str(len(found) - len(counted)), str(caught), share))
    return figures_table(("", "mutants", "equivalent", "caught", "share"), rows)


def proper(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts without those of equivalent mutants that nothing caught."""
    return [one for one in verdicts if one.caught or one.mutant.name not in EQUIVALENT]


def run(texts: Sequence[str], jobs: int) -> int:
    """Print the table of the functions whose key has one of the texts, and the survivors; 1 if there are too many."""
    torch.set_num_threads(1)  # the process is forked
    session = verdicts_of(lambda key: not texts or any(text in key for text in texts), jobs)
    verdicts = list(session.verdicts.values())
    print(table_of(verdicts))
    counted = proper(verdicts)
    survivors = [one for one in counted if not one.caught]
    for one in survivors:
        print(f"\nline {one.mutant.line}, {one.tests} tests: {one.mutant.name}", end="")
    for nodeid in session.failed:
        print(f"\nfailed without a mutant: {nodeid}", end="")
    print()
    return 0 if not session.failed and len(survivors) <= (1 - LEAST) * len(counted) else 1
