"""An axis to resize, and how far the places of its elements are apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT32, INT64, Value
from t2n_core.nnef.sizes.dims import Dim, as_dim, at_most, same

SINGLE = np.float32


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis to resize. `scale` is the factor that the user passed, if any."""

    place: int
    extent: Dim
    size: Dim
    scale: float | None
    copies: Value | bool = False
    """True where PyTorch's kernel copies elements if the result has as many as the input, or twice as many."""

    @property
    def factor(self) -> int:
        """Return how often each element is repeated if the resizing only repeats; otherwise 0."""
        scale = self.scale
        for times in range(1, 17):
            if same(as_dim(self.extent * times), self.size) and (scale is None or scale == times):
                return times
        return 0

    def is_static(self) -> bool:
        return isinstance(self.extent, int) and isinstance(self.size, int)

    def step(self, g: Emitter, align_corners: bool = False) -> Any:
        """Return the input elements per output element: a float32, or a value of the graph."""
        if align_corners:
            return self._step_between_corners(g) if self.size != 1 else SINGLE(0)
        if self.scale is not None and self.scale > 0:
            return SINGLE(1.0 / self.scale)
        return self._ratio(g, self.extent, self.size)

    def step_or_copy(self, g: Emitter, times: int) -> Any:
        """Return the step; 1 / `times` where PyTorch copies each element that often: 3 elements times 1.25 are 3."""
        step, copies = self.step(g), self.copies
        if self.scale is None or not times < self.scale < times + 1 or copies is False:
            return step
        if self.is_static():
            if self.size != as_dim(self.extent * times):
                return step
            if copies is True:
                return SINGLE(1.0 / times)
        alike = g.eq(g.size(as_dim(self.extent * times), INT64), g.size(self.size, INT64))
        copied = g.constant(np.asarray(SINGLE(1.0 / times)))
        return g.select(alike if copies is True else g.and_(alike, copies), copied, float(step))

    def _step_between_corners(self, g: Emitter) -> Any:
        """Return the step from the first element to the last; 0 where the result is one element."""
        over, under = as_dim(self.extent - 1), as_dim(self.size - 1)
        if at_most(1, under):
            return self._ratio(g, over, under)
        divisor = g.size(under, FLOAT32)
        return g.quotient(g.mul(g.size(over, FLOAT32), g.min(divisor, 1.0)), g.max(divisor, 1.0))

    def _ratio(self, g: Emitter, over: Dim, under: Dim) -> Any:
        over, under = as_dim(over), as_dim(under)
        if isinstance(over, int) and isinstance(under, int):
            return SINGLE(over) / SINGLE(under)
        return g.quotient(g.size(over, FLOAT32), g.size(under, FLOAT32))
