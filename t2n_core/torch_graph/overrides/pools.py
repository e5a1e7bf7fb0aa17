"""Pooling over dynamic sizes: windows of dynamic extent, and the number of windows without a guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from t2n_core.torch_graph.overrides.registry import override, patch

_REFUSES = "a window of dynamic extent is not accepted"


def is_same_size(size: Any, other: Any) -> bool:
    """Return whether two sizes are equal for all sizes of the inputs; no guard is added."""
    if isinstance(size, torch.SymInt) and isinstance(other, torch.SymInt):
        return bool(size.node.expr == other.node.expr)
    return type(size) is int and type(other) is int and size == other


def max_pool_of(rank: int, pool: Callable[..., Any]) -> Callable[..., Any]:
    """Return a max pooling over `rank` axes; if its only window is the full input, it is a maximum."""

    def pooled(
        input: torch.Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        spread = any(step != 1 for step in _each(dilation, rank))
        if not (spread or return_indices) and _is_one_window(input, _each(kernel_size, rank), _each(padding, rank)):
            return input.amax([*range(-rank, 0)], keepdim=True)
        more = {"return_indices": True} if return_indices else {}
        return pool(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode, **more)

    return pooled


def avg_pool_of(rank: int, pool: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return an average pooling over `rank` axes; if its only window is the full input, it is a mean."""

    def pooled(
        input: torch.Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> torch.Tensor:  # fmt: skip
        if divisor_override is None and _is_one_window(input, _each(kernel_size, rank), _each(padding, rank)):
            return input.mean([*range(-rank, 0)], keepdim=True)
        more = {} if divisor_override is None else {"divisor_override": divisor_override}
        step = kernel_size if stride is None else stride
        return pool(input, kernel_size, step, padding, ceil_mode, count_include_pad, **more)

    return pooled


def _each(value: Any, rank: int) -> list[Any]:
    """Return an argument of a pooling for each axis."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    return values * rank if len(values) == 1 else values


def _is_one_window(input: torch.Tensor, kernels: Sequence[Any], paddings: Sequence[Any]) -> bool:
    """Return whether a window of dynamic extent covers the input, whatever the stride."""
    symbolic = any(isinstance(kernel, torch.SymInt) for kernel in kernels)
    sizes = input.shape[-len(kernels) :]
    return symbolic and not any(paddings) and len(sizes) == len(kernels) and all(map(is_same_size, kernels, sizes))


for _pool, _rank in ((functional.avg_pool1d, 1), (functional.avg_pool2d, 2), (functional.avg_pool3d, 3)):
    override(_pool, reason=_REFUSES)(avg_pool_of(_rank, _pool))
for _module in (torch, functional):
    for _pool, _rank in ((_module.max_pool2d, 2), (_module.max_pool3d, 3)):
        override(_pool, reason=_REFUSES)(max_pool_of(_rank, _pool))


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
