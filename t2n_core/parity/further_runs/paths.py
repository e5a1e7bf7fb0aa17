"""The paths through an engine that a check takes, and what runs on each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from t2n_core.engine.paths import EnginePath, OnPath, PathRun
from t2n_core.engine.protocol import Engine
from t2n_core.parity.judging.metrics import indifferences
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.parity.sensitivity import sensitivities


@dataclass(frozen=True, slots=True)
class PathPlan:
    """The main path of a check, which runs everything, and the further ones, which run the samples again."""

    engine: Engine
    """The engine on the main path."""
    request: CheckRequest
    """The check on the main path."""
    version: str = ""
    main: str = ""
    """The name of the main path; empty for an engine without paths."""
    further: Sequence[EnginePath] = ()
    fixed: int | None = None
    """The index of the sample whose sizes are fixed on the path that fixes them."""

    def samples(self, path: EnginePath) -> list[int]:
        """Return the indices of the samples that run on a further path."""
        if path is EnginePath.FIXED_SYMBOLS and self.fixed is not None:
            return [self.fixed]
        return list(range(len(self.request.samples)))

    def on(self, path: EnginePath) -> CheckRequest:
        """Return the check on a further path; with fixed symbols there are no sizes to refuse."""
        samples = [self.request.samples[number] for number in self.samples(path)]
        outside = () if path is EnginePath.FIXED_SYMBOLS else self.request.outside
        return replace(self.request, samples=samples, outside=outside)

    def runs(self, outside: Sequence[int]) -> list[PathRun]:
        """Return the runs of the further paths in a job with the samples as its first batches.

        `outside` are the indices of the batches that the engine has to refuse.
        """
        return [
            PathRun(path, self.samples(path), self.request.samples[self.samples(path)[0]].sizes)
            if path is EnginePath.FIXED_SYMBOLS
            else PathRun(path, [*self.samples(path), *outside])
            for path in self.further
        ]


def plan_paths(engine: Any, request: CheckRequest) -> PathPlan:
    """Return the paths of a check: the engine's, with fixed symbols only if the samples have sizes.

    The sensitivity of outputs covers all samples: the one with fixed symbols cannot show it.
    """
    paths: Sequence[EnginePath] = getattr(engine, "paths", ())
    if not paths:
        return PathPlan(engine, request, engine.version)
    fixed = _sample_of_other_sizes(request.samples)
    usable_paths = [path for path in paths if path is not EnginePath.FIXED_SYMBOLS or fixed is not None]
    main, *further = usable_paths or [EnginePath.DECLUTTER]
    if main is EnginePath.FIXED_SYMBOLS and fixed is not None:
        sample = request.samples[fixed]
        alone = replace(request, samples=[sample], outside=())
        return PathPlan(OnPath(engine, main, sample.sizes), alone, engine.version, main)
    if further:
        request = _with_sensitivity(request)
    on_main = engine if main is EnginePath.DECLUTTER else OnPath(engine, main, kept_states=engine.kept_states)
    return PathPlan(on_main, request, engine.version, main, further, fixed)


def _sample_of_other_sizes(samples: Sequence[Sample]) -> int | None:
    """Return the index of the smallest of the samples that are larger than the first in most of their sizes.

    If none is larger, it is a sample that differs in most sizes; a size of 1, which engines treat apart, does not
    count. None if the samples have no sizes.
    """
    traced = samples[0].sizes

    def differing(number: int) -> tuple[int, int, int]:
        sample = samples[number]
        larger = sum(size > traced.get(name, 0) for name, size in sample.sizes.items())
        others = sum(size != traced.get(name) and size > 1 for name, size in sample.sizes.items())
        return -larger, -others, sum(math.prod(array.shape) for array in sample.inputs)

    return min(range(len(samples)), key=differing) if traced else None


def _with_sensitivity(request: CheckRequest) -> CheckRequest:
    samples, criteria = request.samples, request.criteria
    sensitivity, indifferent = request.sensitivity, request.indifferent
    if sensitivity is None:
        sensitivity = sensitivities(samples, request.output_names, criteria, request.constant_outputs)
    if indifferent is None:
        indifferent = indifferences(criteria.metrics, samples)
    return replace(request, sensitivity=sensitivity, indifferent=indifferent)
