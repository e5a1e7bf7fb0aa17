"""Ranges of releases. Nothing else in this package compares versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import Version

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet


@dataclass(frozen=True, slots=True)
class Releases:
    """The releases from `since` on, up to but without `before`; None leaves that end open."""

    since: Version | None = None
    before: Version | None = None
    others: SpecifierSet | None = None
    """Other conditions of a specifier, such as `!=0.21.5`."""

    @classmethod
    def of(cls, since: str | None = None, before: str | None = None) -> Releases:
        """Return the range between two versions, passed as texts. Raises InvalidVersion."""
        return cls(Version(since) if since else None, Version(before) if before else None)

    @classmethod
    def parse(cls, specifier: str) -> Releases:
        """Return the range of a PEP 440 specifier: `>=0.21,<0.23`. Raises InvalidSpecifier.

        Pre-releases count, and come before their release: 0.23.0rc1 is in `<0.23.0`.
        """
        from packaging.specifiers import SpecifierSet

        conditions = {str(condition): condition for condition in SpecifierSet(specifier)}
        lowest = [Version(condition.version) for condition in conditions.values() if condition.operator == ">="]
        ends = [Version(condition.version) for condition in conditions.values() if condition.operator == "<"]
        others = ",".join(text for text, condition in conditions.items() if condition.operator not in (">=", "<"))
        return cls(max(lowest, default=None), min(ends, default=None), SpecifierSet(others) if others else None)

    def __contains__(self, version: Version) -> bool:
        return (
            (self.since is None or version >= self.since)
            and (self.before is None or version < self.before)
            and (self.others is None or self.others.contains(version, prereleases=True))
        )

    def __str__(self) -> str:
        """Return the range as a specifier; empty for all releases."""
        ends = (f"{sign}{end}" for sign, end in ((">=", self.since), ("<", self.before), ("", self.others)) if end)
        return ",".join(ends)

    @property
    def rank(self) -> Version:
        """Return the version by which ranges are ordered: of several that apply, the highest is the newest."""
        return self.since or Version("0")


ALL_RELEASES = Releases()
