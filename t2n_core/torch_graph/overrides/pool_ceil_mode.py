"""Count the windows of a pooling with `ceil_mode` without a guard: PyTorch decides whether the last one fits."""

from __future__ import annotations

from typing import Any

import torch

from t2n_core.torch_graph.overrides.registry import patch


def windows(size: Any, kernel: int, before: int, after: int, stride: int, dilation: int, ceil_mode: bool) -> Any:
    """Return the number of windows along an axis of `size` elements with this padding before and after it.

    With `ceil_mode` the last window may extend beyond the end, but begins within the axis or the padding before it.
    Both bounds are quotients whose numerators differ by a constant, so the smaller one is the same for all sizes.
    """
    field = dilation * (kernel - 1) + 1
    room = size + before + after - field
    if ceil_mode:
        room += min(stride - 1, field - after - 1)
    return room // stride + 1


@patch("torch._meta_registrations.pooling_output_shape_pad_lr", reason="whether the last window fits adds a guard")
def pools_of_any_size(plain: Any) -> Any:
    """Return a function that counts the windows over a dynamic axis with `windows`."""

    def count(size: Any, *rest: Any) -> Any:
        return windows(size, *rest) if isinstance(size, torch.SymInt) else plain(size, *rest)

    return count
