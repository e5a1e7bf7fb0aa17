"""`torch.nn.attention.flex_attention` while a model is captured: attention with the scores and masks computed densely.

PyTorch compiles it, which no capture can follow. A score or a mask is a function of places, which is called once with
all places instead of being compiled for each.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType, FunctionType
from typing import Any, Final

import torch
from torch.nn import functional

from t2n_core.errors import CaptureError

_MODULE: Final = "torch.nn.attention.flex_attention"
_GLOBAL: Final = "__t2n_{}"
Modifier = Callable[..., torch.Tensor]


@contextmanager
def dense_flex_attention() -> Iterator[None]:
    """Replace `flex_attention` and `create_block_mask` by this module's, wherever they were imported, while active.

    PyTorch's module is not loaded for a model that has not loaded it.
    """
    module = sys.modules.get(_MODULE)
    with ExitStack() as stack:
        for function in () if module is None else (flex_attention, create_block_mask):
            plain = getattr(module, function.__name__)
            stack.enter_context(_redirected(plain, function))
        yield


@contextmanager
def _redirected(plain: FunctionType, function: Callable[..., Any]) -> Iterator[None]:
    """Redirect `plain` to `function` while active: by its code, since other modules have imported it."""
    name, before = _GLOBAL.format(plain.__name__), plain.__code__
    compiled = compile(f"lambda *args, **kwargs: {name}(*args, **kwargs)", __file__, "eval")
    code = next(constant for constant in compiled.co_consts if isinstance(constant, CodeType))
    plain.__globals__[name], plain.__code__ = function, code
    try:
        yield
    finally:
        plain.__code__ = before
        del plain.__globals__[name]


class _Mask:
    """A mask that is a function of places, instead of PyTorch's BlockMask."""

    def __init__(self, mask_mod: Modifier) -> None:
        self.mask_mod = mask_mod


def create_block_mask(mask_mod: Modifier, *sizes: Any, **options: Any) -> Any:
    """Return a mask for `flex_attention`: which blocks PyTorch leaves out changes no result."""
    return _Mask(mask_mod)


def flex_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Modifier | None = None,
    block_mask: Any = None,
    scale: Any = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: Any = None,
) -> torch.Tensor:
    """Return the attention [B, H, Q, W] of queries [B, H, Q, E], keys [B, H, K, E] and values [B, H, K, W].

    A row of scores that are all -inf gives zeros, as in PyTorch. Raises CaptureError for what else PyTorch can return.
    """
    if return_lse or return_aux is not None:
        raise CaptureError(
            "flex_attention returns the logarithm of its sums, which capture does not compute",
            hint="leave return_lse and return_aux out",
        )
    if enable_gqa:
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    sizes = (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    places = [torch.arange(size).reshape(-1, *[1] * (3 - axis)) for axis, size in enumerate(sizes)]
    mask = None if block_mask is None else _as_tensor(block_mask.mask_mod(*places))
    if score_mod is None:
        return functional.scaled_dot_product_attention(query, key, value, mask, scale=scale)
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    scores = _as_tensor(score_mod(scores, *places))
    if mask is not None:
        scores = torch.where(mask, scores, -math.inf)
    is_empty = (scores == -math.inf).all(-1, keepdim=True)
    weights = torch.where(is_empty, 0.0, scores.softmax(-1))
    return weights.to(query.dtype) @ value


def _as_tensor(result: Any) -> torch.Tensor:
    """Return the result of a function of places. Raises CaptureError for anything else than a tensor."""
    if not isinstance(result, torch.Tensor):
        raise CaptureError(
            f"a function of flex_attention returned a {type(result).__name__}, not a tensor of the places",
            hint="compute it from the arguments: torch.where(q_idx >= kv_idx, score, -inf)",
        )
    return result
