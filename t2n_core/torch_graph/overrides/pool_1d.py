"""Capture `max_pool1d` as `max_pool2d`: PyTorch's own fixes a dynamic length to the traced one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.overrides.pools import max_pool_of
from t2n_core.torch_graph.overrides.registry import FIXES_SIZES, override_each


def _by_two_axes(
    input: torch.Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> torch.Tensor:  # fmt: skip
    def wide(value: Any, neutral: int) -> list[int]:
        return [neutral, *(value if isinstance(value, list | tuple) else [value])]

    step = kernel_size if stride is None or stride in ([], ()) else stride
    pooled = torch.max_pool2d(
        input.unsqueeze(-2), wide(kernel_size, 1), wide(step, 1), wide(padding, 0), wide(dilation, 1), ceil_mode
    )
    return pooled.squeeze(-2)


_by_two_axes_or_one_window = max_pool_of(1, _by_two_axes)


def _wants_indices(*args: Any, return_indices: bool = False, **kwargs: Any) -> bool:
    return bool(args[6] if len(args) > 6 else return_indices)


def _is_free(*args: Any, **kwargs: Any) -> bool:
    input = args[0] if args else kwargs.get("input", kwargs.get("self"))
    return isinstance(input, torch.Tensor) and isinstance(input.shape[-1], torch.SymInt)


@override_each(torch.max_pool1d, functional.max_pool1d, operator("aten::max_pool1d.default"), reason=FIXES_SIZES)
def max_pool1d(plain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of a max pooling whose length may stay symbolic."""
    if _is_free(*args, **kwargs) and not _wants_indices(*args, **kwargs):
        return _by_two_axes_or_one_window(*args, **kwargs)
    return plain(*args, **kwargs)
