"""The page of the documentation that says how small planted faults get."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.lab.pages.render import render
from conformance.lab.plant.faults.plants import PLANTS
from conformance.lab.plant.trial import Trial

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
