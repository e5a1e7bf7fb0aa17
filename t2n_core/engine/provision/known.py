"""Digests of the releases that were on the index when this version of the package was released.

In addition to the index's own digests, they show that a release is the published one. `python -m tools.known_wheels`
writes the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from packaging.version import Version

FILE: Final = "known_wheels.tsv"


@dataclass(frozen=True, slots=True)
class KnownWheel:
    """One wheel of a release."""

    sha256: str
    library: str = ""
    """SHA-256 of its library; empty if it is not known."""


@cache
def known_wheels() -> Mapping[str, Mapping[str, KnownWheel]]:
    """Return the wheels by version and file name."""
    text = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    wheels: dict[str, dict[str, KnownWheel]] = {}
    for line in text.splitlines():
        wheel, *digests = line.split("\t")
        wheels.setdefault(wheel.split("-")[1], {})[wheel] = KnownWheel(*digests)
    return wheels


@cache
def newest_of_lines() -> tuple[str, ...]:
    """Return the newest known release of each minor line, ascending."""
    return tuple({Version(release).release[:2]: release for release in sorted(known_wheels(), key=Version)}.values())
