"""The releases on the package index, and the outcome of one archive in each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from packaging.version import Version

from t2n_core.engine.provision.index import list_versions
from t2n_core.engine.provision.resolution import resolve_engines
from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.engine.provision.store import EngineStore
from t2n_core.engine.provision.versions import UNUSABLE
from t2n_core.engine.tract.sweep import Sweep
from t2n_core.parity.check import check_parity
from t2n_core.parity.request import CheckRequest
from t2n_core.releases.search import MOST_FETCHES, Judge, ReleaseReport, search_releases


class Releases:
    """The releases on the package index, with one worker for all of them."""

    def __init__(self, *, offline: bool = False, cache_dir: Path | None = None) -> None:
        """List the releases on the index, or with `offline` those in the cache."""
        store = EngineStore(cache_dir)
        self._offline, self._cache_dir = offline, cache_dir
        cached = [Version(stored.manifest.version) for stored in store.list_stored()]
        self.cached = sorted(version for version in cached if version not in UNUSABLE and not version.is_prerelease)
        """The releases on this machine."""
        listed = [] if offline else list_versions(store.cache_dir)
        self.all = sorted(
            {*self.cached, *(version for version in listed if version not in UNUSABLE and not version.is_prerelease)}
        )
        self._sweep = Sweep()

    def __enter__(self) -> Releases:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._sweep.close()

    def resolved(self, release: Version) -> ResolvedEngine:
        """Return a release, fetched if necessary. Raises EngineProvisionError."""
        (engine,) = resolve_engines(str(release), offline=self._offline, cache_dir=self._cache_dir)
        return engine

    def engine(self, release: Version) -> Any:
        """Return the engine of a release in the shared worker. Raises EngineProvisionError."""
        return self._sweep.engine(self.resolved(release))

    def search(self, judge: Judge, versions: Sequence[Version] = (), fetches: int = MOST_FETCHES) -> ReleaseReport:
        """Return the outcomes that are needed to find the boundaries of a case."""
        return search_releases(self.all, judge, cached=self.cached, wanted=versions, fetches=fetches)


def archive_judge(releases: Releases, request: CheckRequest) -> Judge:
    """Return a judge that runs the same check in each release."""
    return lambda release: check_parity(releases.engine(release), request)
