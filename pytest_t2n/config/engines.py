"""The engines of a session: resolved once, then carried to every worker as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from packaging.version import Version

    from pytest_t2n.config.settings import Settings
    from t2n_core.engine import ResolvedEngine

KHRONOS_VERSION = "1.0.5"
ENGINE_PARAM = "t2n_engine"
"""Name of the parameter that a test gets its engine by."""
_NEWEST = ("latest", "all-minors")


@dataclass(frozen=True, slots=True)
class SelectedEngine:
    """One column of the matrix."""

    target: str
    """`tract` or `khronos`."""
    version: str
    label: str
    """Unique within the target: the version, or `path-0.23.5` of a binary."""
    resolved: Mapping[str, str] | None = None
    """The files of the engine, as `ResolvedEngine.to_dict` gives them; None for khronos, which is a dependency."""

    @property
    def id(self) -> str:
        """What test ids end with: `tract-0.21.19`, `khronos`."""
        return f"{self.target}-{self.label}" if self.resolved else self.target

    @property
    def title(self) -> str:
        return f"{self.target} {self.label}"

    @property
    def requested(self) -> str:
        """The item of the version spec that asked for it."""
        return self.resolved.get("requested", "") if self.resolved else ""

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only, which is all that xdist carries."""
        resolved = dict(self.resolved) if self.resolved else None
        return {"target": self.target, "version": self.version, "label": self.label, "resolved": resolved}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> SelectedEngine:
        return cls(fields["target"], fields["version"], fields["label"], fields["resolved"])


def load_resolver() -> Callable[..., list[ResolvedEngine]]:
    """Imported here, so that a session without engines never pays for it."""
    from t2n_core.engine import resolve_engines

    return resolve_engines


def select_engines(settings: Settings, progress: Callable[[str, str], None] | None = None) -> list[SelectedEngine]:
    """Resolve and provision what the settings name: tract versions ascending, binaries behind them, khronos last.

    Raises:
        pytest.UsageError: a spec nothing matches, or an engine that cannot be had.
    """
    from t2n_core.errors import T2NError

    found: dict[str, SelectedEngine] = {}
    for spec in settings.tract:
        try:
            resolved = load_resolver()(spec, offline=settings.offline, cache_dir=settings.cache_dir, progress=progress)
        except T2NError as exc:
            raise pytest.UsageError(f"--t2n-tract={spec}: {exc}") from None
        for engine in resolved:
            found.setdefault(engine.label, SelectedEngine("tract", engine.version, engine.label, engine.to_dict()))
    engines = sorted(found.values(), key=_order)
    if settings.khronos:
        engines.append(SelectedEngine("khronos", KHRONOS_VERSION, KHRONOS_VERSION))
    return engines


def version_items(versions: str | Iterable[str]) -> tuple[str, ...]:
    """The items of a marker's `versions`: 0.21, 0.21.13, ranges, latest, all-minors or all, in one text or a list.

    Raises:
        ValueError: an item is not in the grammar, or there is none.
    """
    texts = [versions] if isinstance(versions, str) else list(versions)
    items: list[str] = []
    for text in (part.strip() for one in texts for part in one.split(",")):
        if items and _is_range(text) and _is_range(items[-1]):
            items[-1] += f",{text}"
        else:
            items.append(text)
    if not items:
        raise ValueError("no version")
    for item in items:
        _matching(item, ())
    return tuple(items)


def engines_for(
    engines: Sequence[SelectedEngine], targets: Iterable[str], versions: Sequence[str] | None = None
) -> list[SelectedEngine]:
    """Those of the session's engines that a test wants; `versions` (items) narrows tract and never adds to it."""
    wanted = set(targets)
    chosen = [engine for engine in engines if engine.target in wanted]
    if versions is None:
        return chosen
    known = [_version(engine) for engine in chosen if engine.target == "tract"]
    kept = {version for item in versions for version in _matching(item, known)}
    return [engine for engine in chosen if engine.target != "tract" or _version(engine) in kept]


def header_line(engines: Sequence[SelectedEngine], cache_dir: Path | None) -> str:
    """`t2n: tract 0.21.19 (0.21), 0.23.9 (0.23); cache /…`"""
    parts = []
    for target in dict.fromkeys(engine.target for engine in engines):
        versions = []
        for engine in engines:
            if engine.target == target:
                asked = engine.requested
                versions.append(f"{engine.label} ({asked})" if asked not in ("", engine.version) else engine.label)
        parts.append(f"{target} {', '.join(versions)}")
    if cache_dir is not None and any(engine.target == "tract" for engine in engines):
        parts.append(f"cache {cache_dir}")
    return f"t2n: {'; '.join(parts)}"


def cache_folder(settings: Settings) -> Path:
    """Where the engines of this session are kept."""
    if settings.cache_dir is not None:
        return settings.cache_dir
    from t2n_core.engine.store import default_cache_dir

    return default_cache_dir()


def _order(engine: SelectedEngine) -> tuple[bool, Version, str]:
    binary = engine.resolved is not None and engine.resolved.get("kind") != "wheel"
    return (binary, _version(engine), engine.id)


def _version(engine: SelectedEngine) -> Version:
    """A binary may say of itself what is no version; it sorts first and no range matches it."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(engine.version)
    except InvalidVersion:
        return Version("0")


def _is_range(text: str) -> bool:
    return text[:1] in tuple("<>=!~")


def _matching(item: str, known: Sequence[Version]) -> set[Version]:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    if item == "all":
        return set(known)
    if item in _NEWEST:
        lines = {version.release[:2] if item == "all-minors" else (): version for version in sorted(known)}
        return set(lines.values())
    if _is_range(item):
        return set(SpecifierSet(item).filter(known, prereleases=True))
    line = Version(item).release
    return {version for version in known if version.release[: len(line)] == line}


__all__ = [
    "ENGINE_PARAM",
    "KHRONOS_VERSION",
    "SelectedEngine",
    "cache_folder",
    "engines_for",
    "header_line",
    "load_resolver",
    "select_engines",
    "version_items",
]
