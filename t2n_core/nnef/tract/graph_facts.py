"""Properties of the values of one graph, by which operations are written and quirks are found."""

from __future__ import annotations

from dataclasses import dataclass, field

from t2n_core.nnef.tract.constants import is_constant, is_folded
from t2n_core.nnef.tract.optimiser import (
    after_removed_axis,
    after_reshape,
    from_convolution,
    summed_axis,
    times_zero,
    unit_axis,
)
from t2n_core.nnef.tract.propagated import Propagated


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """Properties of the values of one graph; each value is analysed once."""

    is_constant: Propagated = field(default_factory=is_constant)
    is_folded: Propagated = field(default_factory=is_folded)
    has_unit_axis: Propagated = field(default_factory=unit_axis)
    has_summed_axis: Propagated = field(default_factory=summed_axis)
    is_after_removed_axis: Propagated = field(default_factory=after_removed_axis)
    is_from_convolution: Propagated = field(default_factory=from_convolution)
    is_times_zero: Propagated = field(default_factory=times_zero)
    is_after_reshape: Propagated = field(default_factory=after_reshape)
