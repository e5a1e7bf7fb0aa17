"""A planted fault, and the side that the check names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from t2n_core.parity.outcome import Outcome
from t2n_core.parity.stage import AUTHOR, Status

Side = Literal["exporter", "engine"]


@dataclass(frozen=True)
class Fault:
    """A fault of a side, and the outcome of the check."""

    side: Side
    name: str
    release: str
    outcome: Outcome

    @property
    def is_seen(self) -> bool:
        """Return whether it is a mismatch, which has an author: a refusal has none, and some changes change nothing."""
        return self.outcome.status is Status.MISMATCH

    @property
    def author(self) -> str:
        """Return the author that the check names, or `nobody`."""
        return str(self.outcome.facts.get(AUTHOR, "nobody"))
