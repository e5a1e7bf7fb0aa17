"""The branches on which the releases of tract were made: three of them, not one sequence of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from packaging.version import Version

_MADE_AFTER: Final = {Version("0.22"): Version("0.21.14"), Version("0.23"): Version("0.22.2")}
"""Start of a line -> the first release of the previous line that was made in parallel: 0.22.1 and 0.21.14 were released
on the same day, and 0.22.3 after 0.23.0."""


def predecessor(release: Version, releases: Sequence[Version]) -> Version | None:
    """Return the release, among `releases`, that this one is based on; None for the first one."""
    older = sorted(candidate for candidate in releases if candidate < release)
    line = [candidate for candidate in older if candidate.release[:2] == release.release[:2]]
    if line:
        return line[-1]
    for start, beside in sorted(_MADE_AFTER.items(), reverse=True):
        if start <= release:
            older = [candidate for candidate in older if candidate < beside or start <= candidate]
    return older[-1] if older else None


def branches(releases: Sequence[Version]) -> list[list[Version]]:
    """Return the releases as branches, oldest first: each begins with the release that it branched from, if any."""
    made_from = {release: predecessor(release, releases) for release in sorted(releases)}
    parents = set(made_from.values())
    ends = [release for release in made_from if release not in parents]
    all_branches, seen = [], set()
    for end in sorted(ends, reverse=True):
        branch: list[Version] = []
        release: Version | None = end
        while release is not None:
            branch.append(release)
            if release in seen:
                break
            seen.add(release)
            release = made_from[release]
        all_branches.append(branch[::-1])
    return all_branches
