"""Comparison of an archive with its re-export for the newer release, both in that release."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.version import Version

from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.parity.check import check_parity
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.releases.judges import Releases
from t2n_core.releases.times import SpeedReport
from t2n_core.releases.upgrade.costs import measure_in_turns


@dataclass(frozen=True, slots=True)
class Again:
    """The archive that was exported again, in comparison with the given one."""

    outcome: Outcome
    """The check of its outputs in the newer release against the given archive's in the older one."""
    ratio: float | None = None
    """Time of its run as a share of the given archive's, the median over rounds; None if not measured."""


@dataclass(frozen=True, slots=True)
class _Other:
    """An engine that runs its own archive instead of any other."""

    engine: Any
    archive: Path

    name = "tract"
    kept_states = None

    @property
    def version(self) -> str:
        return str(self.engine.version)

    def run(self, archive: Path, batches: Sequence[Sequence[Array]], *, timeout: float = 60.0) -> EngineReply:
        """Run as the engine does, with the other archive."""
        reply: EngineReply = self.engine.run(self.archive, batches, timeout=timeout)
        return reply

    def close(self) -> None:
        """Do nothing: the engine is shared."""


def compare_again(
    releases: Releases,
    request: CheckRequest,
    again: Path,
    outputs: Mapping[Sample, tuple[Array, ...]],
    before: Version,
    after: Version,
    *,
    times: bool = True,
) -> Again:
    """Return the comparison of an archive that was exported again for the release `after`.

    `outputs` are the given archive's in the release `before`.
    """
    engine = releases.engine(after)
    samples = [replace(sample, expected=expected) for sample, expected in outputs.items()]
    new_request = replace(request, archive=again, samples=samples, interface=None, reference=f"tract {before}")
    outcome = check_parity(engine, new_request)
    if not times or not outcome.passed:
        return Again(outcome)
    largest = max(samples, key=lambda sample: sum(array.size for array in sample.inputs))
    archives = {before: _Other(engine, request.archive), after: _Other(engine, again)}
    speed: SpeedReport | None = measure_in_turns(
        archives.__getitem__, request.archive, largest.inputs, before, after, request.timeout
    )
    return Again(outcome, None if speed is None else statistics.median(speed.ratios(before, after)))
