"""Ranges of releases. Nothing else in this package compares versions."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import Version


@dataclass(frozen=True, slots=True)
class Releases:
    """The releases from `since` on, up to but without `before`; None leaves that end open."""

    since: Version | None = None
    before: Version | None = None

    @classmethod
    def of(cls, since: str | None = None, before: str | None = None) -> Releases:
        """Return the range between two versions that are given as texts. Raises InvalidVersion."""
        return cls(*(Version(text) if text else None for text in (since, before)))

    def __contains__(self, version: Version) -> bool:
        return (self.since is None or version >= self.since) and (self.before is None or version < self.before)

    @property
    def rank(self) -> Version:
        """Return the version by which ranges are ordered: of several that hold, the highest is the newest."""
        return self.since or Version("0")


ALL_RELEASES = Releases()

__all__ = ["ALL_RELEASES", "Releases"]
