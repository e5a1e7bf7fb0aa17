"""The search for boundaries: all releases on this machine are tried, others by bisection."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from packaging.version import Version

from t2n_core.engine.provision.branches import branches
from t2n_core.errors import EngineProvisionError
from t2n_core.parity.outcome import Outcome
from t2n_core.releases.boundaries import RIGHT, Boundary, Stretch, boundaries_of, ending_of, stretches_of

MOST_FETCHES: Final = 7
"""Releases that a search fetches at most: 30 MB and 4 seconds each."""

Judge = Callable[[Version], Outcome]
"""Returns the outcome of the case in a release; raises EngineProvisionError if it cannot be fetched."""


@dataclass(frozen=True, slots=True)
class ReleaseReport:
    """The outcomes of one case in the releases that were tried."""

    outcomes: Mapping[Version, Outcome]
    releases: tuple[Version, ...]
    """All existing releases."""
    fetched: tuple[Version, ...] = ()
    failures: Mapping[Version, str] = field(default_factory=dict)
    """Release -> why it could not be fetched."""

    @property
    def endings(self) -> dict[Version, str]:
        return {release: ending_of(outcome) for release, outcome in self.outcomes.items()}

    @property
    def boundaries(self) -> list[Boundary]:
        return boundaries_of(self.endings, self.releases)

    @property
    def stretches(self) -> list[Stretch]:
        return stretches_of(self.endings, self.releases)

    @property
    def right(self) -> list[Version]:
        """Return the releases in which the case is right, oldest first."""
        return sorted(release for release, ending in self.endings.items() if ending == RIGHT)

    def nearest_right(self, release: Version) -> Version | None:
        """Return the right release with the fewest others between it and this one; the newer of two."""
        return next(iter(_nearest_first(self.right, release, self.releases)), None)

    def describe(self) -> str:
        """Return stretches and boundaries as text for a terminal."""
        lines = [f"{len(self.outcomes)} of {len(self.releases)} releases of tract tried"]
        if self.fetched:
            lines[0] += f", {len(self.fetched)} of them fetched"
        if self.failures:
            names = ", ".join(map(str, sorted(self.failures)))
            lines.append(f"  not to be had: {names} ({next(iter(self.failures.values()))})")
        if not self.outcomes:
            return "\n".join(lines)
        lines += [f"  {stretch.describe()}" for stretch in self.stretches]
        boundaries = self.boundaries
        lines.append("boundaries:" if boundaries else "no boundary: the outcome is the same in all of them")
        lines += [f"  {boundary.describe()}" for boundary in boundaries]
        return "\n".join(lines)


def search_releases(
    releases: Sequence[Version],
    judge: Judge,
    *,
    cached: Sequence[Version],
    wanted: Sequence[Version] = (),
    fetches: int = MOST_FETCHES,
) -> ReleaseReport:
    """Try the `cached` releases and the `wanted` ones, then bisect between those with different outcomes.

    Without a boundary, the ends of branches are fetched first, the newest and the oldest release before others. At most
    `fetches` releases that are not cached are tried in addition to the wanted ones; the newest boundaries come first.
    """
    outcomes: dict[Version, Outcome] = {}
    failures: dict[Version, str] = {}
    fetched: list[Version] = []

    def attempt(release: Version) -> None:
        try:
            outcomes[release] = judge(release)
        except EngineProvisionError as wrong:
            failures[release] = wrong.message
            return
        if release not in cached:
            fetched.append(release)

    for release in dict.fromkeys([*cached, *wanted]):
        attempt(release)
    left = fetches
    while left > 0 and (following := _next(releases, outcomes, failures)) is not None:
        attempt(following)
        left -= 1
    return ReleaseReport(outcomes, tuple(sorted(releases)), tuple(fetched), failures)


def search_right(
    releases: Sequence[Version], judge: Judge, near: Version, *, cached: Sequence[Version], seconds: float
) -> ReleaseReport:
    """Try the `cached` releases, the nearest to `near` first, until one is right; none is started after `seconds`."""
    outcomes: dict[Version, Outcome] = {}
    failures: dict[Version, str] = {}
    end = time.monotonic() + seconds
    for release in _nearest_first(cached, near, releases):
        if time.monotonic() >= end:
            break
        try:
            outcomes[release] = judge(release)
        except EngineProvisionError as wrong:
            failures[release] = wrong.message
            continue
        if ending_of(outcomes[release]) == RIGHT:
            break
    return ReleaseReport(outcomes, tuple(sorted(releases)), failures=failures)


def _nearest_first(some: Iterable[Version], near: Version, releases: Iterable[Version]) -> list[Version]:
    """Return some of the releases by the number of others between each and `near`; the newer of two first."""
    order = sorted({*releases, near})
    near_index = order.index(near)
    return sorted(some, key=lambda release: (abs(order.index(release) - near_index), -order.index(release)))


def _next(
    releases: Sequence[Version], outcomes: Mapping[Version, Outcome], failed: Collection[Version]
) -> Version | None:
    """Return the release to fetch next; None if bisection has nothing left to learn."""
    endings = {release: ending_of(outcome) for release, outcome in outcomes.items()}
    for middle in _middles(endings, releases, failed):
        return middle
    if boundaries_of(endings, releases):
        return None
    of_known = [branch for branch in branches(releases) if not endings.keys().isdisjoint(branch)]
    ends = [max(releases), min(releases), *(end for branch in of_known for end in (branch[0], branch[-1]))]
    return next((release for release in ends if release not in endings and release not in failed), None)


def _middles(
    endings: Mapping[Version, str], releases: Sequence[Version], failed: Collection[Version]
) -> Iterator[Version]:
    """Yield the middle of each inexact boundary, the newest first."""
    for boundary in reversed(boundaries_of(endings, releases)):
        for branch in branches(releases):
            if boundary.before in branch and boundary.after in branch:
                between = branch[branch.index(boundary.before) + 1 : branch.index(boundary.after)]
                usable = [release for release in between if release not in failed]
                if usable:
                    yield usable[len(usable) // 2]
