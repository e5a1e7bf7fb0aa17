"""Boundaries: consecutive releases of a branch in which the outcomes of a case differ."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packaging.version import Version

from t2n_core.engine.provision.branches import branches
from t2n_core.parity.outcome import Outcome

RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Boundary:
    """Two consecutive releases of a branch with different outcomes."""

    before: Version
    after: Version
    was: str
    becomes: str
    unknown: int = 0
    """Releases between them that were not tried: 0 for an exact boundary."""

    def describe(self) -> str:
        """Return `0.21.7 right, 0.21.8 mismatch at compare`."""
        gap = f" ({self.unknown} between them were not tried)" if self.unknown else ""
        return f"{self.before} {self.was}, {self.after} {self.becomes}{gap}"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive releases of a branch with the same outcome."""

    first: Version
    last: Version
    ending: str

    def describe(self) -> str:
        between = str(self.first) if self.first == self.last else f"{self.first} … {self.last}"
        return f"{between}: {self.ending}"


def ending_of(outcome: Outcome) -> str:
    """Return the outcome of a case in a release, as a text that is equal for outcomes of one kind."""
    return RIGHT if outcome.passed else f"{outcome.status.value} at {outcome.stage.value}"


def boundaries_of(endings: Mapping[Version, str], releases: Sequence[Version]) -> list[Boundary]:
    """Return the boundaries among known endings, along the branches of all releases; oldest first."""
    boundaries = {}
    for branch in branches(releases):
        tried = [index for index, release in enumerate(branch) if release in endings]
        for left, right in itertools.pairwise(tried):
            before, after = branch[left], branch[right]
            if endings[before] != endings[after]:
                gap = right - left - 1
                boundaries[before, after] = Boundary(before, after, endings[before], endings[after], gap)
    return [boundaries[pair] for pair in sorted(boundaries)]


def stretches_of(endings: Mapping[Version, str], releases: Sequence[Version]) -> list[Stretch]:
    """Return the known outcomes as stretches of releases; the first release of a branch is in its own branch only."""
    stretches: list[Stretch] = []
    listed: set[Version] = set()
    for branch in branches(releases):
        begins = True
        for release in branch:
            if release not in endings or release in listed:
                continue
            listed.add(release)
            ending = endings[release]
            if begins or stretches[-1].ending != ending:
                stretches.append(Stretch(release, release, ending))
                begins = False
            else:
                stretches[-1] = Stretch(stretches[-1].first, release, ending)
    return stretches
