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
    older = sorted(one for one in releases if one < release)
    line = [one for one in older if one.release[:2] == release.release[:2]]
    if line:
        return line[-1]
    for start, beside in sorted(_MADE_AFTER.items(), reverse=True):
        if start <= release:
            older = [one for one in older if one < beside or start <= one]
    return older[-1] if older else None


def branches(releases: Sequence[Version]) -> list[list[Version]]:
    """Return the releases as branches, oldest first: each begins with the release that it branched from, if any."""
    made_from = {one: predecessor(one, releases) for one in sorted(releases)}
    parents = set(made_from.values())
    ends = [one for one in made_from if one not in parents]
    all_branches, taken = [], set()
    for end in sorted(ends, reverse=True):
        branch: list[Version] = []
        one: Version | None = end
        while one is not None:
            branch.append(one)
            if one in taken:
                break
            taken.add(one)
            one = made_from[one]
        all_branches.append(branch[::-1])
    return all_branches
