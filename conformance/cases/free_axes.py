"""Find the free axes of a call's inputs: PyTorch itself accepts them in another size, other arguments unchanged.

The shape passed to `view`, or a norm's weights, fix sizes of the input; varying these would test nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from string import ascii_uppercase
from typing import Any, TypeAlias

import torch
from torch import Tensor

Axis: TypeAlias = tuple[int, int]
"""Number of the input, number of the axis."""
_MOST = 5
"""Axes of one length up to which all choices of them are tried."""


def free_axes(model: Callable[..., Any], inputs: Sequence[Tensor]) -> list[list[Axis]]:
    """Return groups of equally long axes that can be lengthened together; no axis is in two groups.

    Axes of one element and axes of integer inputs, which may be indices, are left alone.
    """
    varied = [i for i, x in enumerate(inputs) if x.is_floating_point() or x.dtype == torch.bool]
    lengths = dict.fromkeys(n for i in varied for n in inputs[i].shape if n > 1)
    groups = []
    for length in lengths:
        left = [(i, axis) for i in varied for axis, n in enumerate(inputs[i].shape) if n == length]
        while left:
            group = next((g for g in _choices(left) if _runs(model, inputs, g, length)), None)
            if group is None:
                break
            groups.append(group)
            left = [axis for axis in left if axis not in group]
    return groups


def dynamic_axes_of(groups: Iterable[Sequence[Axis]], names: Sequence[str]) -> dict[str, dict[int, str]]:
    """Return the axes as `dynamic_axes` takes them, with one symbol for each group."""
    axes: dict[str, dict[int, str]] = {}
    for symbol, group in zip(ascii_uppercase, groups, strict=False):
        for i, axis in group:
            axes.setdefault(names[i], {})[axis] = symbol
    return axes


def _choices(axes: Sequence[Axis]) -> Iterable[list[Axis]]:
    """Return the subsets of axes to try, all of them first, single ones last."""
    counts = range(len(axes), 0, -1) if len(axes) <= _MOST else (len(axes), 1)
    return (list(chosen) for count in counts for chosen in itertools.combinations(axes, count))


def _runs(model: Callable[..., Any], inputs: Sequence[Tensor], axes: Sequence[Axis], length: int) -> bool:
    """Return whether PyTorch takes these axes in another length; not 1, which would be broadcast."""
    sizes = (length + 1, length + 2, length + 3, length + 4, 2 * length, 3 * length, length - 1)
    return any(_runs_at(model, inputs, axes, size) for size in sizes if size > 1)


def _runs_at(model: Callable[..., Any], inputs: Sequence[Tensor], axes: Sequence[Axis], size: int) -> bool:
    resized = list(inputs)
    for i, axis in axes:
        places = torch.arange(size) % resized[i].shape[axis]
        resized[i] = resized[i].index_select(axis, places)
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            model(*(x.clone() for x in resized))
    except Exception:
        return False
    return True
