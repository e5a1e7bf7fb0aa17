"""Resolution of a version spec to engines whose files are on this machine."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Final

from packaging.version import Version

from t2n_core.engine.provision.binary import resolve_binary
from t2n_core.engine.provision.index import known_versions, last_answer, warn_of_stale
from t2n_core.engine.provision.known import known_wheels
from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.engine.provision.store import EngineStore, Progress, StoredEngine, is_listed, newest_listed
from t2n_core.engine.provision.versions import Choice, SpecItem, choose_versions, matches, parse_spec
from t2n_core.errors import EngineIndexWarning, EngineResolveError

ALLOW_UNLISTED: Final = "T2N_ALLOW_UNLISTED"
"""The variable that allows explicitly named versions whose digests are not known."""


def resolve_engines(
    spec: str,
    *,
    offline: bool = False,
    cache_dir: Path | None = None,
    progress: Progress | None = None,
    fetch: bool = True,
    allow_unlisted: bool | None = None,
) -> list[ResolvedEngine]:
    """Resolve `spec` (grammar: `versions.py`) and provision every engine it selects: ascending, binaries last.

    The index is queried once per process, and not at all if the cache has every release that it could select. With
    `offline` only the cache is used. Raises EngineResolveError for an invalid spec, an unknown version, or offline
    without a cached answer; EngineProvisionError if an engine cannot be fetched or is damaged.

    A version whose digests are not known is never selected by `0.23`, `latest` and ranges. Naming it exactly is refused
    unless `allow_unlisted` is true; None reads the variable T2N_ALLOW_UNLISTED.

    Without `fetch` releases are only selected, for callers that need only their names: their library is the folder
    where it would be, and they have no digest.
    """
    items = parse_spec(spec)
    store = EngineStore(cache_dir)
    binaries = {item.path.absolute(): item for item in items if item.kind == "path"}
    if allow_unlisted is None:
        allow_unlisted = os.environ.get(ALLOW_UNLISTED, "") not in ("", "0")
    available, note = _available(items, spec, store, offline)
    choices = choose_versions(items, _select_listed(items, available, allow_unlisted))
    _warn_of_newer(items, store)
    from_paths = [resolve_binary(path, item.text) for path, item in binaries.items()]
    if fetch:
        stored = store.fetch_many((choice.version for choice in choices), offline=offline, progress=progress)
        wheels = [_resolve(engine, choice) for engine, choice in zip(stored, choices, strict=True)]
    else:
        wheels = [
            ResolvedEngine("wheel", str(choice.version), store.folder(choice.version), "", choice.requested)
            for choice in choices
        ]
    warn_of_stale(note)  # not where a release has to be fetched and cannot be: that error says it
    return [*wheels, *sorted(from_paths, key=lambda binary: Version(binary.version))]


def _available(items: tuple[SpecItem, ...], spec: str, store: EngineStore, offline: bool) -> tuple[list[Version], str]:
    """Return the versions to choose from, and the note that the index did not answer."""
    release_items = [item for item in items if item.kind != "path"]
    if (complete := _complete_without_index(release_items, store)) is not None:
        return complete, ""
    cached = store.versions_on_disk()
    listed, note = known_versions(store.cache_dir, offline=offline)
    if not listed and not cached:
        raise EngineResolveError(
            f"offline, and {store.cache_dir} has no answer of the index",
            hint=f"run `t2n engines fetch {_quote(spec)}` with a network first",
        )
    return sorted({*listed, *cached}), note


def _complete_without_index(items: list[SpecItem], store: EngineStore) -> list[Version] | None:
    """Return the versions to choose from if the index cannot change the choice; None if it can.

    Only known releases and exactly named ones are ever selected, and the index adds none. So if all versions selected
    from these are in the cache, the index's list gives the same selection.
    """
    candidates = {Version(item.text) for item in items if item.kind == "exact"}
    if any(item.kind != "exact" for item in items):
        if not known_wheels():
            return None
        candidates.update(map(Version, known_wheels()))
    try:
        selected = choose_versions(items, candidates)
    except EngineResolveError:
        return None
    return sorted(candidates) if all(store.has(choice.version) for choice in selected) else None


def _select_listed(items: tuple[SpecItem, ...], available: list[Version], allow_unlisted: bool) -> list[Version]:
    """Return the versions whose digests are known or that an item names exactly.

    Raises EngineResolveError for a version named but not allowed, and for an item that only unknown versions match.
    """
    exact_versions = {Version(item.text) for item in items if item.kind == "exact"}
    refused = sorted(version for version in exact_versions & set(available) if not is_listed(version))
    if refused and not allow_unlisted:
        raise _unlisted(refused)
    for item in items:
        matching = [version for version in available if not is_listed(version) and matches(item, version)]
        if matching and not any(is_listed(version) and matches(item, version) for version in available):
            raise _unlisted(matching, item.text)
    return [version for version in available if is_listed(version) or version in exact_versions]


def _warn_of_newer(items: tuple[SpecItem, ...], store: EngineStore) -> None:
    """Warn that `latest` leaves out a newer release, by the index's last answer: it is not queried for that."""
    if not any(item.kind == "latest" for item in items):
        return
    unlisted = [
        version for version in last_answer(store.cache_dir) if not is_listed(version) and not version.is_prerelease
    ]
    newer = [version for version in unlisted if version > newest_listed()]
    if newer:
        warnings.warn(
            f"`latest` is tract {newest_listed()}, the newest release that this version of pytest-t2n knows; "
            f"the index has {newer[-1]}, which --t2n-allow-unlisted runs by its number",
            EngineIndexWarning,
            stacklevel=3,
        )


def _unlisted(versions: list[Version], spec: str = "") -> EngineResolveError:
    """Return the error for versions whose digests are not known; `spec` matches no other version."""
    names, newest = ", ".join(map(str, versions)), newest_listed()
    is_newer = min(versions) > newest
    tables = f"; they run with the tables of {newest}" if is_newer else ""
    return EngineResolveError(
        f"tract {names} is newer than what this version of pytest-t2n knows, {newest}"
        if is_newer
        else f"tract {names} is not one of the releases whose digests are known here",
        hint="update pytest-t2n; or, if you trust its source, "
        f"{f'name {versions[-1]} in place of {spec} with ' if spec else ''}--t2n-allow-unlisted, --allow-unlisted of "
        f"`t2n`, or {ALLOW_UNLISTED}=1{tables}",
    )


def _quote(spec: str) -> str:
    return f"'{spec}'" if any(character in spec for character in "<>!~ ") else spec


def _resolve(engine: StoredEngine, choice: Choice) -> ResolvedEngine:
    return ResolvedEngine(
        kind="wheel",
        version=str(choice.version),
        library=engine.library,
        sha256=engine.manifest.library_sha256,
        requested=choice.requested if is_listed(choice.version) else f"{choice.requested}, unlisted",
    )
