"""Changes of speed: consecutive releases of a branch of which one is clearly faster, measured in paired runs."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from packaging.version import Version

from t2n_core.engine.protocol import Array, Engine
from t2n_core.engine.provision.branches import branches

ROUNDS: Final = 7
"""Rounds; in each, every release runs once, so that load on the machine affects all of them."""
REPEATS: Final = 20
"""Runs of a release per round."""
CLEAR: Final = 1.5
"""Ratio of times from which on a change counts."""
AGREEING: Final = 0.85
"""Share of the rounds that must agree."""


@dataclass(frozen=True, slots=True)
class SpeedChange:
    """Two consecutive releases of a branch with different speeds."""

    before: Version
    after: Version
    ratio: float
    """Time of the later one, as a share of the earlier one's: the median over rounds."""

    def describe(self) -> str:
        if self.ratio > 1:
            return f"{self.after} takes {self.ratio:.2f} times as long as {self.before}"
        return f"{self.after} is {1 / self.ratio:.2f} times as fast as {self.before}"


@dataclass(frozen=True, slots=True)
class SpeedReport:
    """Seconds of a run by release, one value per round."""

    seconds: Mapping[Version, tuple[float, ...]]
    failed: tuple[Version, ...] = ()
    """Releases that do not run the archive."""
    loads: Mapping[Version, tuple[float, ...]] = field(default_factory=dict)
    """Seconds to load and optimise it, by release, one value per round."""

    def ratios(self, before: Version, after: Version) -> list[float]:
        """Return the time of a release as a share of another's, one value per round."""
        pairs = zip(self.seconds[before], self.seconds[after], strict=True)
        return [later / earlier for earlier, later in pairs]

    @property
    def changes(self) -> list[SpeedChange]:
        """Return the changes of speed, along the branches of the releases that run, oldest first."""
        changes = {}
        for branch in branches(list(self.seconds)):
            for before, after in itertools.pairwise(branch):
                ratios = self.ratios(before, after)
                ratio = statistics.median(ratios)
                same_way = sum((round_ratio > 1) == (ratio > 1) for round_ratio in ratios)
                if max(ratio, 1 / ratio) >= CLEAR and same_way >= AGREEING * len(ratios):
                    changes[before, after] = SpeedChange(before, after, ratio)
        return [changes[pair] for pair in sorted(changes)]

    def describe(self) -> str:
        """Return medians and changes as text for a terminal."""
        lines = [f"{len(self.seconds)} releases of tract measured, {len(self.failed)} do not run it"]
        for release, rounds in sorted(self.seconds.items()):
            lines.append(f"  {release!s:8} {statistics.median(rounds) * 1e6:9.1f} µs")
        changes = self.changes
        lines.append("changes:" if changes else f"no change by a factor of {CLEAR:g} or more")
        return "\n".join([*lines, *(f"  {change.describe()}" for change in changes)])


def measure_releases(
    releases: Sequence[Version],
    engine: Callable[[Version], Engine],
    archive: Path,
    inputs: Sequence[Array],
    *,
    rounds: int = ROUNDS,
    repeats: int = REPEATS,
    timeout: float = 60.0,
) -> SpeedReport:
    """Measure an archive in releases, round by round."""
    seconds: dict[Version, list[float]] = {release: [] for release in releases}
    loads: dict[Version, list[float]] = {release: [] for release in releases}
    failed: list[Version] = []
    for _ in range(rounds):
        for release in [candidate for candidate in releases if candidate not in failed]:
            reply = engine(release).run(archive, [inputs] * repeats, timeout=timeout)
            if reply.status == "ok":
                seconds[release].append(reply.times["run"] / repeats)
                loads[release].append(reply.times.get("load", 0.0) + reply.times.get("optimise", 0.0))
            else:
                failed.append(release)
    running = [release for release in releases if release not in failed]
    return SpeedReport(
        {release: tuple(seconds[release]) for release in running},
        tuple(failed),
        {release: tuple(loads[release]) for release in running},
    )
