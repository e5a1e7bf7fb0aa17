"""The variation `traced at 1`: the example of a case cut to one row or step, as users often give it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

Axes = Mapping[str, Mapping[int, str]]


def cut_to_one(inputs: Mapping[str, Any], axes: Axes, symbols: Sequence[str]) -> dict[str, Any]:
    """The inputs with only the first element along every axis of these symbols."""
    cut: dict[str, Any] = {}
    for name, value in inputs.items():
        for axis, symbol in axes.get(name, {}).items():
            if symbol in symbols and isinstance(value, Tensor):
                value = value.narrow(axis, 0, 1)
        cut[name] = value.clone(memory_format=torch.contiguous_format) if isinstance(value, Tensor) else value
    return cut


def symbols_at_one(run: Callable[[dict[str, Any]], Any], inputs: Mapping[str, Any], axes: Axes) -> list[str]:
    """As many symbols as can be 1 together in PyTorch, in the order in which they are declared."""
    found: list[str] = []
    for symbol in dict.fromkeys(symbol for of in axes.values() for symbol in of.values()):
        try:
            with torch.no_grad():
                run(cut_to_one(inputs, axes, [*found, symbol]))
        except Exception:
            continue
        found.append(symbol)
    return found


def in_rows(inputs: Mapping[str, Any], axes: Axes, symbols: Sequence[str], count: int) -> dict[str, Any]:
    """The inputs with `count` elements along every axis of these symbols: their own repeated, floats varied."""
    random = torch.Generator().manual_seed(count)
    found: dict[str, Any] = {}
    for name, value in inputs.items():
        for axis, symbol in axes.get(name, {}).items():
            if symbol in symbols and isinstance(value, Tensor):
                place = torch.arange(count) % value.shape[axis]
                value = value.index_select(axis, place)
                if value.is_floating_point():  # no two elements alike
                    shape = [count if a == axis else 1 for a in range(value.dim())]
                    value = value * (1 + 0.2 * torch.rand(shape, generator=random))
        found[name] = value
    return found
