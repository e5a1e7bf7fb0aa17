"""`torch.hann_window` and similar functions of a dynamic size, computed from a range, since PyTorch's would fix it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from t2n_core.torch_graph.overrides.registry import FIXES_SIZES, override_each


def cosines(size: Any, periodic: bool, weights: Sequence[float], dtype: torch.dtype) -> torch.Tensor:
    """Return w[0] - w[1] cos(a) + w[2] cos(2 a) … with `a` from 0 to 2 pi; a window of one element is 1."""
    arange: Any = torch.arange  # takes sizes, whatever its annotations say
    full: Any = torch.full
    steps = full((), size if periodic else size - 1, dtype=dtype).clamp(min=1)
    angle = arange(size, dtype=dtype) * (2 * math.pi / steps)
    terms = [(-1) ** n * weight * torch.cos(angle * n) for n, weight in enumerate(weights) if n]
    window = functools.reduce(torch.add, terms, torch.full((), weights[0], dtype=dtype))
    return torch.where(full((), size) == 1, torch.ones((), dtype=dtype), window)


def _hann() -> list[float]:
    return [0.5, 0.5]


def _blackman() -> list[float]:
    return [0.42, 0.5, 0.08]


def _hamming(alpha: float = 0.54, beta: float = 0.46) -> list[float]:
    return [alpha, beta]


_WEIGHTS: dict[Any, Callable[..., list[float]]] = {
    torch.hann_window: _hann,
    torch.hamming_window: _hamming,
    torch.blackman_window: _blackman,
}


@override_each(*_WEIGHTS, reason=FIXES_SIZES)
def window(
    plain: Any, window_length: Any, periodic: bool = True, *more: float, dtype: torch.dtype | None = None,
    **options: Any,
) -> Any:  # fmt: skip
    """Return a window; of a dynamic length, as a sum of cosines."""
    result_dtype = dtype or torch.get_default_dtype()
    parameters = {name: options[name] for name in ("alpha", "beta") if name in options}
    if not isinstance(window_length, torch.SymInt) or not result_dtype.is_floating_point:
        return plain(window_length, periodic, *more, dtype=dtype, **options)
    return cosines(window_length, periodic, _WEIGHTS[plain](*more, **parameters), result_dtype)
