"""The version grammar of `--t2n-tract`: pure functions over a list of available versions.

A spec is a comma list of items:

    0.21              the newest release whose version starts with 0.21
    0.21.13           exactly this one; also the only way to name a pre-release (`0.23.0.dev5`)
    >=0.21,<0.23      every release in this range; any PEP 440 operator
    latest            the newest release
    all-minors        the newest release of each minor line
    all               every release
    path:/to/tract    a tract command-line binary (a path cannot contain a comma)

The comma of a list and the comma of a range look alike. The rule: an item that starts with a comparison operator is
one range together with the items directly after it that start with an operator too. `>=0.21,<0.23` is one range;
`0.21,0.23` are two lines; `0.19,>=0.21,<0.23,latest` are three items. Two ranges need another item between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.version import InvalidVersion, Version

from t2n_core.errors import EngineResolveError
from t2n_core.text import suggestion

ItemKind = Literal["line", "exact", "range", "latest", "all-minors", "all", "path"]

KEYWORDS = ("latest", "all-minors", "all")
UNUSABLE = frozenset({Version("0.19.0")})
"""Releases that cannot enable tract_core, and so cannot load what an exporter writes."""

_OPERATORS = ("<", ">", "=", "!", "~")
_GRAMMAR = "0.21, 0.21.13, >=0.21,<0.23, latest, all-minors, all or path:/to/tract"


@dataclass(frozen=True, slots=True)
class SpecItem:
    """One item of a spec, still unresolved."""

    kind: ItemKind
    text: str

    @property
    def path(self) -> Path:
        """Return the file that a `path` item names."""
        return Path(self.text.removeprefix("path:")).expanduser()


@dataclass(frozen=True, slots=True)
class Choice:
    """A version, and the first item that selected it."""

    version: Version
    requested: str


def parse_spec(spec: str) -> tuple[SpecItem, ...]:
    """Return the items of a spec, which may name versions that do not exist. Raises EngineResolveError."""
    texts: list[str] = []
    for part in (part.strip() for part in spec.split(",")):
        if not part:
            raise EngineResolveError(f"empty item in the version spec {spec!r}", hint=f"write {_GRAMMAR}")
        if texts and part.startswith(_OPERATORS) and texts[-1].startswith(_OPERATORS):
            texts[-1] += f",{part}"
        else:
            texts.append(part)
    return tuple(_classify(text) for text in texts)


def _classify(text: str) -> SpecItem:
    if text.startswith("path:"):
        if text == "path:":
            raise EngineResolveError("`path:` names no file", hint="write path:/to/tract")
        return SpecItem("path", text)
    if text == "latest":
        return SpecItem("latest", text)
    if text == "all-minors":
        return SpecItem("all-minors", text)
    if text == "all":
        return SpecItem("all", text)
    if text.startswith(_OPERATORS):
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        try:
            SpecifierSet(text)
        except InvalidSpecifier as cause:
            raise EngineResolveError(f"{text!r} is not a version range", hint=f"write {_GRAMMAR}") from cause
        return SpecItem("range", text)
    try:
        version = Version(text)
    except InvalidVersion as cause:
        hint = suggestion(text, KEYWORDS, f"write {_GRAMMAR}")
        raise EngineResolveError(f"{text!r} is not an engine version", hint=hint) from cause
    is_line = len(version.release) < 3 and not version.is_prerelease and not version.is_postrelease
    return SpecItem("line" if is_line else "exact", text)


def matches(item: SpecItem, version: Version) -> bool:
    """Return whether an item that names a line or a range of releases covers a version."""
    if item.kind == "line":
        prefix = Version(item.text).release
        return not version.is_prerelease and version.release[: len(prefix)] == prefix
    if item.kind != "range":
        return False
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(item.text).contains(version)


def choose_versions(items: Iterable[SpecItem], available: Iterable[Version]) -> list[Choice]:
    """Resolve every item but paths against `available`: ascending, no duplicates.

    Raises EngineResolveError for an item that nothing matches; the message names the nearest versions.
    """
    everything = sorted(set(available))
    chosen: dict[Version, str] = {}
    for item in items:
        if item.kind == "path":
            continue
        for version in _matches(item, everything):
            chosen.setdefault(version, item.text)
    return [Choice(version, chosen[version]) for version in sorted(chosen)]


def _matches(item: SpecItem, everything: Sequence[Version]) -> list[Version]:
    releases = [v for v in everything if not v.is_prerelease and v not in UNUSABLE]
    matching: list[Version]
    if item.kind == "exact":
        exact_version = Version(item.text)
        if exact_version in UNUSABLE:
            raise EngineResolveError(
                f"tract {exact_version} cannot load tract_core operators, so it cannot be used",
                hint=_nearby(exact_version, releases),
            )
        matching = [v for v in everything if v == exact_version]
    elif item.kind == "line":
        prefix = Version(item.text).release
        matching = [v for v in releases if v.release[: len(prefix)] == prefix][-1:]
    elif item.kind == "range":
        from packaging.specifiers import SpecifierSet

        matching = list(SpecifierSet(item.text).filter(releases))
    elif item.kind == "latest":
        matching = releases[-1:]
    elif item.kind == "all-minors":
        matching = list({v.release[:2]: v for v in releases}.values())
    else:
        matching = releases
    if not matching:
        version = Version(item.text) if item.kind in ("exact", "line") else None
        raise EngineResolveError(f"no release of tract matches {item.text!r}", hint=_nearby(version, releases))
    return matching


def _nearby(version: Version | None, releases: Sequence[Version]) -> str:
    """Return a hint with the releases of the same minor line if there are some, otherwise the newest of each line."""
    if not releases:
        return "no release is available for this platform"
    if version is not None:
        line = [str(v) for v in releases if v.release[:2] == (*version.release, 0)[:2]]
        if line:
            return f"available in this line: {', '.join(line)}"
    newest = {v.release[:2]: str(v) for v in releases}
    return f"newest of each line: {', '.join(newest.values())}"
