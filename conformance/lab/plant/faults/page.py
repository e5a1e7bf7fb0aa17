"""The page of the documentation that says how small planted faults get."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.lab.pages.render import render
from conformance.lab.plant.faults.plants import PLANTS, Plant

MOST_OPERATORS = 3
SECONDS = {"crash": 60.0, "timeout": 60.0, "oom": 60.0}
"""Time that is allowed by the status of a failure; 10 for others."""


@dataclass(frozen=True, slots=True)
class Result:
    """The reduction of one graph."""

    plant: Plant
    before: int
    status: str
    operators: int
    elements: int
    runs: int
    seconds: float
    alike: bool
    """True if what is left fails as the whole did."""

    @property
    def is_small(self) -> bool:
        return self.operators <= MOST_OPERATORS and self.elements <= self.plant.elements

    @property
    def is_fast(self) -> bool:
        return self.seconds <= SECONDS.get(self.status, 10.0)


def page(random: Sequence[Result], built: Sequence[Result], seed: int) -> str:
    """Return the page of the documentation; `built` are the results of architectures."""
    figures = {"median": statistics.median, "plants": PLANTS, "MOST_OPERATORS": MOST_OPERATORS}
    return render("faults", random=random, built=built, seed=seed, **figures)
