"""Borders and sliding windows as NNEF 1.0.5 defines them: over every axis of a tensor, channels and batch too."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

Padding: TypeAlias = Sequence[tuple[int, int]]


def fold(position: Tensor, extent: int, border: str) -> Tensor:
    """Map coordinates to those in [0, extent) with their values. Raises ValueError for an unknown border."""
    if border == "replicate":
        return position.clamp(0, extent - 1)
    if border == "reflect":  # ... 2 1 | 0 1 2 3 | 2 1 ...
        last = extent - 1
        return last - (last - position.remainder(max(2 * last, 1))).abs()
    if border == "reflect-even":  # ... 1 0 | 0 1 2 3 | 3 2 ...
        position = position.remainder(2 * extent)
        return torch.minimum(position, 2 * extent - 1 - position)
    raise ValueError(f"border {border!r}")


def pad(input: Tensor, padding: Padding, border: str = "constant", value: float = 0.0) -> Tensor:
    """Pad any axis of a tensor of any rank, with any border; a negative amount crops."""
    if border in ("constant", "ignore"):
        amounts = itertools.chain.from_iterable(reversed(padding))
        return torch.nn.functional.pad(input, list(amounts), value=value)
    for axis, (before, after) in enumerate(padding):
        positions = torch.arange(-before, input.shape[axis] + after, device=input.device)
        input = input.index_select(axis, fold(positions, input.shape[axis], border))
    return input


class Window:
    """A window that slides on every axis. Its elements are numbered row by row, as the standard requires."""

    def __init__(
        self,
        extents: Sequence[int],
        size: Sequence[int],
        padding: Padding = (),
        stride: Sequence[int] = (),
        dilation: Sequence[int] = (),
    ) -> None:
        """Create a window; empty `padding` means automatic, empty `stride` and `dilation` mean ones."""
        ones = [1] * len(extents)
        self.size, self.step, self.gap = list(size), list(stride or ones), list(dilation or ones)
        self.span = [(k - 1) * g + 1 for k, g in zip(self.size, self.gap, strict=True)]
        centred = [_automatic_padding(*axis) for axis in zip(extents, self.span, self.step, strict=True)]
        self.padding = list(padding) or centred

    def view(self, padded: Tensor) -> Tensor:
        """Return [positions..., elements] of a padded tensor. Raises ValueError if the window does not fit."""
        if any(n < s for n, s in zip(padded.shape, self.span, strict=True)):
            raise ValueError(f"window {self.span} is larger than the padded tensor {list(padded.shape)}")
        padded = padded.contiguous()
        count = [(n - s) // k + 1 for n, s, k in zip(padded.shape, self.span, self.step, strict=True)]
        move = [s * k for s, k in zip(padded.stride(), self.step, strict=True)]
        tap = [s * g for s, g in zip(padded.stride(), self.gap, strict=True)]
        return padded.as_strided(count + self.size, move + tap).flatten(len(count))

    def taps(self, x: Tensor, border: str, outside: float = 0.0) -> Tensor:
        """Return [positions..., elements] of `x` with its border; a constant or ignored one has the value `outside`."""
        constant = border in ("constant", "ignore")
        return self.view(pad(x, self.padding, "constant" if constant else border, outside if constant else 0.0))


def _automatic_padding(extent: int, span: int, step: int) -> tuple[int, int]:
    """Return the automatic padding: enough for ceil(extent / step) positions, with the odd element at the end."""
    steps = -(-extent // step) - 1
    short = max(steps * step + span - extent, 0)
    return short // 2, short - short // 2
