"""The page of the documentation that says how small planted faults get."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conformance.lab.pages.tables import table
from conformance.lab.plant.faults.plants import PLANTS, Plant

MOST_OPERATORS = 3
SECONDS = {"crash": 60.0, "timeout": 60.0, "oom": 60.0}
"""Time that is allowed by the status of a failure; 10 for others."""
_COLUMNS = ("operators", "elements", "runs", "seconds")


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
    counts = f"--count {len(random)} --architectures {len(built)}"
    command = f"python -m conformance.lab.plant.faults {counts} --seed {seed} -o docs/reference/faults.md"
    text = f"""# Planted faults

How small the [reducer](../how-to/upstream.md#the-smallest-graph) makes what fails. Each graph has one statement in its
middle that a release computes wrongly, refuses or dies of. Small is at most {MOST_OPERATORS} operators and 64 elements
(160 for `mul` and `div`, whose bad kernel is not taken below 132). Seconds are those of one core: engines and their
start are in them, and the interpreter that computes in float64 is not. A graph can fail of something else than what
was planted.

## In random graphs

Of 40 and 150 statements. {_summary(random)}

{_table(random)}
"""
    if built:
        text += f"""
## In architectures

Those of the suite `models`, exported for the release: {_spread([one.before for one in built])} operators. The plant
reads a piece of a value in the middle of the graph, and what follows reads what it made of it. {_summary(built)}

{_table(built)}
"""
    return f"{text}\n## The command\n\n`{command}`\n"


def _summary(results: Sequence[Result]) -> str:
    counts = (sum(getattr(one, name) for one in results) for name in ("is_small", "is_fast", "alike"))
    small, fast, alike = counts
    return (
        f"Of {len(results)} graphs {small} became small, {alike} of what is left fail as the whole did, and {fast} "
        "took at most 10 seconds, or 60 where the engine dies."
    )


def _spread(values: Sequence[int]) -> str:
    return f"{min(values)} to {max(values)}, in the median {statistics.median(values):.0f}"


def _table(results: Sequence[Result]) -> str:
    head = ["fault", "tract", "failure", "graphs", "small", *(f"{one}, median (most)" for one in _COLUMNS)]
    return table(head, [_row(one, mine) for one in PLANTS if (mine := [r for r in results if r.plant is one])])


def _row(plant: Plant, mine: Sequence[Result]) -> list[str]:
    def both(values: Iterable[float], form: str = ".0f") -> str:
        numbers = list(values)
        return f"{statistics.median(numbers):{form}} ({max(numbers):{form}})"

    statuses = ", ".join(sorted({one.status for one in mine}))
    return [
        plant.name,
        plant.release,
        statuses,
        str(len(mine)),
        str(sum(one.is_small for one in mine)),
        both(one.operators for one in mine),
        both(one.elements for one in mine),
        both(one.runs for one in mine),
        both((one.seconds for one in mine), ".1f"),
    ]
