"""A fault of the exporter or of an engine, and the side that the check names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conformance.lab.plant.trial import Trial
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.stage import AUTHOR, Status


@dataclass(frozen=True, slots=True)
class Blame(Trial):
    """A fault with its side, and the author that the check names, which is empty without a mismatch."""

    error: str
    """The class of the error, where there is one."""

    @classmethod
    def of(cls, side: Literal["exporter", "engine"], name: str, release: str, outcome: Outcome) -> Blame:
        """Return what the check says of a fault; a mismatch without an author is the work of `nobody`."""
        is_seen = outcome.status is Status.MISMATCH
        author = str(outcome.facts.get(AUTHOR, "nobody")) if is_seen else ""
        error = "" if outcome.error is None else outcome.error.error_class
        return cls(side, f"{name} on {release}", side, author, error)
