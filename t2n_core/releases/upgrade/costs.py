"""Operators, times and memory of one file in two releases."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from packaging.version import Version

from t2n_core.engine.protocol import Array, Engine
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.profiling.profile import Profile, profile_archive
from t2n_core.releases.judges import Releases
from t2n_core.releases.times import AGREEING, ROUNDS, SpeedReport, measure_releases

SLOWER: Final = 1.2
"""Ratio of times from which on a release is slower, in nearly every round."""
_ROUND: Final = 0.05
"""Seconds that the runs of a release take in a round, as far as the limits of their number allow."""
_FEWEST, _MOST = 5, 400
_SLOWER_CPU: Final = 1.1
"""Ratio of CPU times from which on they confirm that: load on the machine changes only the other."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Times of a run in two releases, the older one first."""

    releases: tuple[Version, Version]
    speed: SpeedReport
    profiles: tuple[Profile, ...] = ()
    """The profiles of both, if the newer one seems slower or they were asked for."""

    @property
    def ratio(self) -> float:
        """Return the time of a run in the newer release as a share of that in the older one, the median over rounds."""
        return statistics.median(self.speed.ratios(*self.releases))

    @property
    def seems_slower(self) -> bool:
        """Return whether the newer release took clearly longer in nearly every round."""
        ratios = self.speed.ratios(*self.releases)
        return sum(ratio >= SLOWER for ratio in ratios) >= AGREEING * len(ratios)

    @property
    def is_slower(self) -> bool:
        """Return whether it did, and its CPU time says so too."""
        if not self.seems_slower or len(self.profiles) < 2:
            return False
        before, after = self.profiles
        return after.cpu >= _SLOWER_CPU * before.cpu


def measure_costs(
    releases: Releases,
    archive: Path,
    inputs: Sequence[Array],
    before: Version,
    after: Version,
    *,
    origins: Mapping[str, str] | None = None,
    profile: bool = False,
    timeout: float = 60.0,
) -> Costs | None:
    """Return the times of a file that runs in two releases in turns; None if one of them does not run it.

    With `profile`, and where the newer one seems slower, both are profiled, which takes 12 seconds and measures their
    CPU time and memory.
    """
    speed = measure_in_turns(releases.engine, archive, inputs, before, after, timeout)
    if speed is None:
        return None
    costs = Costs((before, after), speed)
    if not profile and not costs.seems_slower:
        return costs
    profiles = []
    for release in (before, after):
        with closing(TractEngine(releases.resolved(release))) as engine:
            profiles.append(profile_archive(engine, archive, inputs, origins=origins, timeout=timeout))
    return replace(costs, profiles=tuple(profiles))


def measure_in_turns(
    engine: Callable[[Version], Engine],
    archive: Path,
    inputs: Sequence[Array],
    before: Version,
    after: Version,
    timeout: float,
) -> SpeedReport | None:
    """Return the times of two engines in turns, with as many runs in a round as take long enough; None if one fails."""
    both = [before, after]
    first = measure_releases(both, engine, archive, inputs, rounds=1, repeats=_FEWEST, timeout=timeout)
    if first.failed:
        return None
    longest = max(rounds[0] for rounds in first.seconds.values())
    repeats = max(_FEWEST, min(_MOST, int(_ROUND / longest)))
    speed = measure_releases(both, engine, archive, inputs, rounds=ROUNDS, repeats=repeats, timeout=timeout)
    return None if speed.failed else speed


@dataclass(frozen=True, slots=True)
class OperatorChange:
    """Operators of the optimised graphs whose number differs."""

    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Operator -> its nodes in the older and in the newer release."""
    nodes: tuple[int, int] = (0, 0)
    """All nodes of both graphs; zeros if they are not known."""

    @classmethod
    def of(cls, before: Mapping[str, int], after: Mapping[str, int]) -> OperatorChange:
        """Return the change between two counts; empty if one of them is not known."""
        if not before or not after:
            return cls()
        names = sorted(before.keys() | after.keys())
        counts = {name: (before.get(name, 0), after.get(name, 0)) for name in names}
        changed = {name: pair for name, pair in counts.items() if pair[0] != pair[1]}
        return cls(changed, (sum(before.values()), sum(after.values())))
