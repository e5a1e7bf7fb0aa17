"""Find the axis that bounds the integers of an input, as indices or lengths, by trying what a model accepts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from t2n_core.parity.samples import Array


@dataclass(frozen=True, slots=True)
class Limit:
    """Integers from `low` to the size of an axis, or to its last index."""

    low: int
    input: int
    axis: int
    is_index: bool

    def ends(self, shapes: Sequence[Sequence[int]]) -> tuple[int, int]:
        """Return the smallest and largest integer for inputs of these shapes."""
        return self.low, max(self.low, shapes[self.input][self.axis] - self.is_index)

    def describe(self, names: Sequence[str]) -> str:
        axis = f"axis {self.axis} of {names[self.input]}"
        if self.is_index:
            return f"indices from {self.low} to the last of {axis}"
        return f"lengths from {self.low} to that of {axis}"


def limit_of(index: int, examples: Sequence[Array], runs: Callable[[Sequence[Array]], bool]) -> Limit | None:
    """Return the limit of the integers in one input; None if the model accepts larger ones, or no axis fits.

    An axis bounds them if the model accepts its size, or one less, and not the next integer.
    """
    example = examples[index]
    highest = int(example.max())

    def takes(integer: int, before: int) -> bool:
        array = np.where(example == before, integer, example).astype(example.dtype)
        return runs([*examples[:index], array, *examples[index + 1 :]])

    axes = {
        extent: (other, axis)
        for other, array in reversed(list(enumerate(examples)))
        for axis, extent in reversed(list(enumerate(array.shape)))
        if other != index and highest <= extent < np.iinfo(example.dtype).max
    }
    if example.min() < 0 or not axes or takes(max(axes) + 1, highest):
        return None
    for extent, (other, axis) in sorted(axes.items(), reverse=True):
        if takes(extent + 1, highest):
            return None
        is_length = extent == highest or takes(extent, highest)
        if is_length or (extent - 1 >= highest and takes(extent - 1, highest)):
            low = 0 if example.min() == 0 or takes(0, int(example.min())) else 1
            return Limit(low, other, axis, is_index=not is_length)
    return None
