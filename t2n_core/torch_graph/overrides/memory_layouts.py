"""Memory formats that depend on dynamic sizes: PyTorch answers without a guard."""

from __future__ import annotations

import math
import sys
from types import FrameType
from typing import Any

import torch

from t2n_core.torch_graph.overrides.registry import override
from t2n_core.torch_graph.reachable import is_foreign

_ORDERS = {torch.channels_last: (1, 3, 2, 0), torch.channels_last_3d: (1, 4, 3, 2, 0)}
"""Memory format -> its axes, innermost first."""


@override(torch.Tensor.is_contiguous, reason="PyTorch answers without a guard on sizes")
def is_contiguous(self: torch.Tensor, memory_format: torch.memory_format = torch.contiguous_format) -> bool:
    """Return PyTorch's answer, with guards on the sizes that decide it.

    PyTorch's own code computes the same either way, and gets no guards.
    """
    if not _is_symbolic(self) or is_foreign(_caller()):
        return self.is_contiguous(memory_format=memory_format)
    return has_format(self, memory_format)


def has_format(tensor: torch.Tensor, memory_format: torch.memory_format) -> bool:
    """Return whether a tensor is contiguous in a memory format, by comparing its sizes and strides.

    The comparisons guard the answer: where it changes, another range begins.
    """
    if not _is_symbolic(tensor):
        return tensor.is_contiguous(memory_format=memory_format)
    if memory_format is torch.contiguous_format:
        order: tuple[int, ...] = tuple(reversed(range(tensor.dim())))
        if math.prod(tensor.shape) == 0:
            return True
    else:
        order = _ORDERS.get(memory_format, ())
    if len(order) != tensor.dim():
        return tensor.is_contiguous(memory_format=memory_format)
    expected: Any = 1
    for axis in order:
        if tensor.shape[axis] != 1:
            if tensor.stride(axis) != expected:
                return False
            expected = expected * tensor.shape[axis]
    return True


def _is_symbolic(tensor: torch.Tensor) -> bool:
    return any(isinstance(size, torch.SymInt) for size in (*tensor.shape, *tensor.stride()))


def _caller() -> str | None:
    """Return the name of the calling module, skipping the modes of this package and of PyTorch."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name: str = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name != "__torch_function__" and name.partition(".")[0] != "t2n_core":
            return name
        frame = frame.f_back
    return None
