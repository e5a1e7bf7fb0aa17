"""Many releases of tract in one worker, at a fortieth of the cost of a worker each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from t2n_core.engine.paths import EnginePath, paths_of
from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.engine.tract.engine import TractEngine


class Sweep:
    """A worker that loads the library of each release that is used.

    Jobs are forked, so that none affects the next. All have the kernels of one tier.
    """

    def __init__(self) -> None:
        self._worker: TractEngine | None = None

    def engine(self, resolved: ResolvedEngine) -> SweptEngine:
        """Return the engine of a release from a wheel; it is started with its first job."""
        if self._worker is None:
            self._worker = TractEngine(resolved)
        return SweptEngine(self._worker, resolved)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()


class SweptEngine:
    """One release in the worker of a sweep; implements `Engine`."""

    name = "tract"
    kept_states = None

    def __init__(self, worker: TractEngine, resolved: ResolvedEngine) -> None:
        self._worker, self.resolved = worker, resolved

    @property
    def version(self) -> str:
        return self.resolved.version

    @property
    def paths(self) -> tuple[EnginePath, ...]:
        """Return the paths on which an archive is checked, the main one first."""
        return paths_of(self.resolved)

    def run(
        self, archive: Path, batches: Sequence[Sequence[Array]], *, timeout: float = 60.0, **options: Any
    ) -> EngineReply:
        """Run as `TractEngine.run` does, with its options."""
        return self._worker.run(archive, batches, timeout=timeout, release=self.resolved, **options)

    def close(self) -> None:
        """Do nothing: the sweep owns the worker."""
