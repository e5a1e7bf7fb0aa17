"""A model after transforms of its engine: what it takes and returns then, or how the engine failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2n_core.check.transforms.interface import Interface
from t2n_core.check.transforms.outcomes import CHANGED, TRANSFORMS, with_transform_names
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.engine.tract.transforms.transform import Transform
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.outcomes import failure_outcome
from t2n_core.parity.samples import Sample


@dataclass(frozen=True, slots=True)
class TransformedModel:
    """The inputs and outputs of a model before and after transforms, and the facts of its outcomes."""

    before: Interface
    now: Interface
    facts: dict[str, Any]


def apply_transforms(
    engine: TractEngine,
    archive: Path,
    transforms: Sequence[Transform],
    samples: Sequence[Sample],
    criteria: Judgement,
    scratch: Path,
    timeout: float,
) -> TransformedModel | Outcome:
    """Return the model after transforms, which the engine keeps in `scratch`, or the outcome of its failure."""
    facts: dict[str, Any] = {TRANSFORMS: [str(transform) for transform in transforms]}
    reply = engine.transformed(archive, transforms, scratch, timeout=timeout)
    if reply.status == "ok":
        facts[CHANGED] = list(reply.facts["changed"])
        return TransformedModel(Interface.of(reply.facts), Interface.of(reply.facts["transformed"]), facts)
    common: dict[str, Any] = {
        "engine": f"{engine.name} {engine.version}",
        "required": criteria.required,
        "times": dict(reply.times),
        "facts": {**reply.facts, **facts},
    }
    return with_transform_names(failure_outcome(reply, samples, common, timeout), transforms)
