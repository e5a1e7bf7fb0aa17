"""An entry of the table of cases that releases are known to get wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from packaging.version import Version

from conformance.dialect.judge import Status, Verdict
from t2n_core.dialect.cases import Case
from t2n_core.nnef.releases import Releases


def _every(case: Case) -> bool:
    return True


@dataclass(frozen=True)
class Known:
    """Cases of operators that some releases compute wrongly, refuse or die of."""

    operators: tuple[str, ...]
    statuses: tuple[Status, ...]
    reason: str
    when: Callable[[Case], bool] = _every
    since: str | None = None
    before: str | None = None
    by_chance: bool = False
    """True for results that depend on what is in memory: a case may be right."""

    def explains(self, verdict: Verdict) -> bool:
        """Return whether a verdict that is not `right` is one of these."""
        return (
            verdict.case.op in self.operators
            and verdict.status in self.statuses
            and self.in_release(verdict.release)
            and self.when(verdict.case)
        )

    def in_release(self, release: str) -> bool:
        """Return whether this holds in a release."""
        return Version(release) in Releases.of(self.since, self.before)
