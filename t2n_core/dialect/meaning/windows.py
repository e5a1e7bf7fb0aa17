"""Windows that slide over the axes of a tensor: padding, strides, dilations, borders."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_MODES: Final = {"replicate": "edge", "replicated": "edge", "reflect": "reflect", "reflect-even": "symmetric"}
"""tract's `pad` spells the first one `replicated`."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows along some axes, with the amounts of padding before and after each axis."""

    size: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def span(self) -> tuple[int, ...]:
        """The extents of a window, with the gaps of its dilation."""
        return tuple((size - 1) * gap + 1 for size, gap in zip(self.size, self.dilation, strict=True))

    def count(self, extents: Sequence[int]) -> tuple[int, ...]:
        """Return how many windows fit along each axis: floor((extent + padding - span) / stride) + 1.

        Raises ValueError for a window that is larger than the padded axis.
        """
        counts = tuple(
            (extent + before + after - span) // step + 1
            for extent, (before, after), span, step in zip(extents, self.padding, self.span, self.stride, strict=True)
        )
        if any(number < 1 and extent for number, extent in zip(counts, extents, strict=True)):
            raise ValueError(f"a window of {list(self.span)} is larger than {list(extents)} with its padding")
        return tuple(max(number, 0) for number in counts)

    def offsets(self) -> Iterator[tuple[int, ...]]:
        """Yield the positions inside a window in row-major order, with the gaps of its dilation."""
        return itertools.product(
            *(range(0, size * gap, gap) for size, gap in zip(self.size, self.dilation, strict=True))
        )

    def places(self, offset: Sequence[int], count: Sequence[int]) -> tuple[slice, ...]:
        """Return the slices of the padded axes that hold the element at `offset` of every window."""
        return tuple(
            slice(first, first + (number - 1) * step + 1 if number else first, step)
            for first, number, step in zip(offset, count, self.stride, strict=True)
        )


def windows_of(
    extents: Sequence[int],
    size: Sequence[int],
    padding: Sequence[Sequence[int]] | None,
    stride: Sequence[int] | None,
    dilation: Sequence[int] | None,
) -> Windows:
    """Return the windows over axes of these extents. What is None or empty has its default.

    Strides and dilations are 1 by default. Without padding the windows number ceil(extent / stride): what is missing is
    added on both sides, the odd element after the axis.
    Source: NNEF 1.0.5, Sliding-Window Operations.
    """
    ones = (1,) * len(size)
    steps, gaps = tuple(stride or ones), tuple(dilation or ones)
    plain = Windows(tuple(size), (), steps, gaps)
    if padding:
        amounts = tuple((int(before), int(after)) for before, after in padding)
    else:
        missing = [
            max((-(-extent // step) - 1) * step + span - extent, 0)
            for extent, step, span in zip(extents, steps, plain.span, strict=True)
        ]
        amounts = tuple((total // 2, total - total // 2) for total in missing)
    if not len(amounts) == len(steps) == len(gaps) == len(size) == len(extents):
        raise ValueError(f"size, padding, stride and dilation do not all have {len(extents)} items")
    return Windows(tuple(size), amounts, steps, gaps)


def padded(input: NDArray[Any], padding: Sequence[Sequence[int]], border: str, value: Any = 0) -> NDArray[Any]:
    """Return the input with elements added before and after each axis; a negative amount removes elements.

    Border `constant` (and `ignore`) adds `value`, `replicate` the first or last element, `reflect` mirrors the axis at
    that element, `reflect-even` mirrors it with that element repeated.
    Source: NNEF 1.0.5, Sliding-Window Operations (border modes), and the operation `pad`.
    """
    cut = tuple(
        slice(max(-before, 0), extent - max(-after, 0))
        for (before, after), extent in zip(padding, input.shape, strict=True)
    )
    amounts = [(max(before, 0), max(after, 0)) for before, after in padding]
    input = input[cut]
    if not any(map(any, amounts)):
        return input
    if border in ("constant", "ignore"):
        return np.pad(input, amounts, constant_values=value)
    if border not in _MODES:
        raise ValueError(f"{border!r} is not a border: constant, ignore, {', '.join(_MODES)}")
    return np.pad(input, amounts, mode=_MODES[border])  # type: ignore[call-overload]
