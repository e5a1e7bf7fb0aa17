"""The default judgement of a transform: the check's for an exact transform, a wider one otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from t2n_core.engine.tract.transforms.table import Loss
from t2n_core.engine.tract.transforms.transform import Transform
from t2n_core.parity.judging.float16_level import LARGEST, peak, rms
from t2n_core.parity.judging.judgement import STORED, Judgement

PEAK: Final = 4 * LARGEST
"""The largest error of a model in another float type, as a share of the largest element of its output. A model exported
partly in float16 keeps within a fourth of it; here the engine also sums in float16."""
BOUNDS: Final[Mapping[Loss, float]] = {Loss.EIGHT_BITS: 0.05, Loss.FOUR_BITS: 0.3}
"""The largest root mean square of the errors, as a share of the standard deviation of the output."""


def loss_of(transforms: Sequence[Transform]) -> Loss:
    """Return the precision loss of the coarsest of several transforms."""
    return max((transform.entry.loss for transform in transforms), default=Loss.NONE)


def default_judgement(transforms: Sequence[Transform], plain_judgement: Judgement) -> Judgement:
    """Return the judgement of a model after transforms; `plain_judgement` is the check's without them."""
    loss = loss_of(transforms)
    if loss is Loss.NONE:
        return plain_judgement
    if loss is Loss.FLOAT16:
        return replace(Judgement.of(metric={"peak": peak}, bound={"peak": PEAK}), in_float64=True)
    return Judgement.of(metric={"rms": rms}, bound={"rms": BOUNDS[loss]}, reference=STORED)
