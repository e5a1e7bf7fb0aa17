"""Names the release that loads a file which another does not load in time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from packaging.version import Version

from t2n_core.errors import T2NError
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.stage import Stage, Status
from t2n_core.releases.judges import Releases

_SECONDS = 10.0
"""Limit of time of each release that is tried."""
_MOST = 3
"""Most releases that are tried."""


class Cached(Protocol):
    """Engines of the releases on this machine; `Releases` has them."""

    @property
    def cached(self) -> Sequence[Version]: ...

    def engine(self, release: Version) -> Any: ...


def with_hint_on_loading(outcome: Outcome, archive: Path, version: str, cache_dir: Path | None = None) -> Outcome:
    """Return the outcome of a release of tract, with what other releases in the cache do if it did not load in time."""
    if outcome.status is not Status.TIMEOUT or outcome.stage is not Stage.LOAD:
        return outcome
    with Releases(offline=True, cache_dir=cache_dir) as releases:
        return with_loading_release(outcome, archive, version, releases)


def with_loading_release(outcome: Outcome, archive: Path, version: str, releases: Cached) -> Outcome:
    """Return a time-out whose hint says which other release loads the file.

    The newest release of each other line on this machine is tried, the nearest lines first, until one loads the file.
    """
    assert outcome.error is not None
    tried: list[str] = []
    for release in _others(version, releases.cached):
        start = time.perf_counter()
        try:
            reply = releases.engine(release).run(archive, [], timeout=_SECONDS)
        except T2NError:
            continue
        seconds = time.perf_counter() - start
        if reply.status == "ok":
            tried.append(f"tract {release} loads the same file in {max(seconds, 0.1):.1f} s")
            break
        why = f"not in {_SECONDS:g} s" if reply.status == "timeout" else f"{reply.status} at {reply.stage}"
        tried.append(f"tract {release} does not load it either ({why})")
    hint = "; ".join([*tried, outcome.error.hint])
    return replace(outcome, error=replace(outcome.error, hint=hint))


def _others(version: str, cached: Sequence[Version]) -> Iterator[Version]:
    """Yield the newest of each other line, the nearest lines first."""
    own_version = Version(version)
    newest = {
        release.release[:2]: release for release in sorted(cached) if release.release[:2] != own_version.release[:2]
    }

    def distance(line: tuple[int, ...]) -> int:
        return abs(line[0] * 1000 + line[1] - own_version.major * 1000 - own_version.minor)

    yield from [newest[line] for line in sorted(newest, key=distance)][:_MOST]
