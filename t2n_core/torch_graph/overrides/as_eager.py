"""Correct or refuse calls that torch.export captures with other results than eager PyTorch's."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.compat.operators import functional_overloads
from t2n_core.torch_graph.compat.private import legacy_get_string
from t2n_core.torch_graph.overrides.registry import DIFFERS, FIXES_SIZES, override, override_each, patch

_AXES = {"hsplit": 1, "vsplit": 0, "dsplit": 2}
_SPLITS = [getattr(owner, name) for owner in (torch, torch.Tensor) for name in _AXES]
_SQUEEZES = [o for key in ("aten::squeeze", "aten::squeeze_copy") for o in functional_overloads(key)]


@override(functional.multilabel_margin_loss, reason=DIFFERS)
def multilabel_margin_loss(
    input: torch.Tensor, target: torch.Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> torch.Tensor:
    """Compute the loss: PyTorch's decomposition counts targets after the first -1, and keeps an axis for a vector.

    `input` and `target` are [N, C] or [C]. See torch.nn.MultiLabelMarginLoss for the formula.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce, emit_warning=False)
    x, y = torch.atleast_2d(input, target)  # type: ignore[no-untyped-call]
    classes = x.shape[1]
    valid = (y == -1).to(torch.int64).cumsum(1) == 0  # [N, T]: before the first -1
    chosen = torch.where(valid, y, 0)
    target_mask = valid.unsqueeze(2) & (chosen.unsqueeze(2) == torch.arange(classes))  # [N, T, C]
    margins = (1 - x.gather(1, chosen).unsqueeze(2) + x.unsqueeze(1)).clamp_min(0)
    counted = valid.unsqueeze(2) & ~target_mask.any(1, keepdim=True)
    loss: torch.Tensor = torch.where(counted, margins, 0).sum((1, 2)) / classes
    if reduction == "none":
        return loss.reshape(input.shape[:-1])
    return loss.mean() if reduction == "mean" else loss.sum()


@override(torch.narrow, torch.Tensor.narrow, reason="a tensor as `start` would be a size that depends on data")
def narrow(input: torch.Tensor, dim: int, start: Any, length: Any) -> torch.Tensor:
    """Narrow with an index of rows if `start` is a tensor: as a size it would depend on data."""
    if not isinstance(start, torch.Tensor):
        return torch.narrow(input, dim, start, length)
    first = torch.where(start < 0, start + input.shape[dim], start)
    return input.index_select(dim, first + torch.arange(length))


@override(torch.squeeze, torch.Tensor.squeeze, torch.squeeze_copy, *_SQUEEZES, reason=DIFFERS)
def squeeze(input: torch.Tensor, dim: Any = None) -> torch.Tensor:
    """Return the squeezed tensor, or a copy.

    Whether a dynamic axis is dropped depends on its size, and torch.export does not guard that.
    """
    dims = range(input.dim()) if dim is None else dim if isinstance(dim, list | tuple) else (dim,)
    for axis in dims:
        if isinstance(axis, int) and -input.dim() <= axis < input.dim():
            bool(input.shape[axis] == 1)  # adds the guard
    return input.squeeze() if dim is None else input.squeeze(dim)


@override_each(torch.pixel_shuffle, torch.pixel_unshuffle, reason=DIFFERS)
def move_pixels(operator: Callable[..., torch.Tensor], input: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """Return a shuffled image. Eager PyTorch accepts any strides, the captured operator only some.

    An image without pixels keeps its channels, which depends on its sizes, and capture does not guard that.
    """
    for extent in input.shape:
        bool(extent >= 1)
    return operator(input.contiguous(), *args, **kwargs)


@override(torch.tensor_split, torch.Tensor.tensor_split, reason=FIXES_SIZES)
def tensor_split(
    input: torch.Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None
) -> Sequence[torch.Tensor]:
    """Split into pieces whose sizes are quotients of the dynamic one; capture would fix each of them."""
    count: Any = next((value for value in (indices_or_sections, indices, sections) if value is not None), None)
    legal = isinstance(count, int) and count > 0 and -input.dim() <= dim < input.dim()
    if not legal or not isinstance(input.shape[dim], torch.SymInt):
        return torch.tensor_split(input, count, dim)
    size: Any = input.shape[dim]
    sizes = [(size + count - 1 - index) // count for index in range(count - 1)]
    return torch.split_with_sizes(input, [*sizes, size - sum(sizes)], dim)


@override_each(*_SPLITS, reason=FIXES_SIZES)
def split_at(plain: Callable[..., Any], input: torch.Tensor, *arguments: Any, **keywords: Any) -> Any:
    """Split as `hsplit`, `vsplit` and `dsplit` do along their axis; capture would fix the position of each index."""
    indices = next(iter((*arguments, *keywords.values())), None)
    axis = 0 if plain.__name__ == "hsplit" and input.dim() == 1 else _AXES[plain.__name__]
    if isinstance(indices, list | tuple) and input.dim() > axis:
        return torch.tensor_split(input, indices, axis)
    return plain(input, *arguments, **keywords)


@override(torch.linspace, reason=FIXES_SIZES)
def linspace(start: Any, end: Any, steps: Any, *, dtype: torch.dtype | None = None, **options: Any) -> torch.Tensor:
    """Compute `torch.linspace` from both ends to the middle; the `steps` of PyTorch's own cannot be a dynamic size."""
    float_type = dtype or torch.get_default_dtype()
    if not isinstance(steps, torch.SymInt) or not float_type.is_floating_point:
        return torch.linspace(start, end, steps, dtype=dtype, **options)
    arange: Any = torch.arange  # takes sizes, whatever its annotations say
    full: Any = torch.full
    indices = arange(steps)
    step = full((), end - start, dtype=float_type) / full((), steps - 1, dtype=float_type).clamp(min=1)
    near = (indices < steps // 2) | (indices == 0)
    return torch.where(near, start + step * indices, end - step * (steps - 1 - indices))


# a write into `weight.data` counts as one into the weight
override(torch.Tensor.data.__get__, reason="capture would keep it as a tensor without values")(torch.Tensor.detach)  # type: ignore[attr-defined]


@patch(
    "torch.nn.modules.transformer._detect_is_causal_mask",
    reason="nn.Transformer compares a mask with the causal one, of which capture has no values",
)
def skip_mask_checks(_: Any) -> Any:
    """Return a check that says no, so that the mask argument is used, with the same result."""

    def use_argument(mask: torch.Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
        return is_causal is True

    return use_argument


@contextmanager
def eager_padding(model: nn.Module) -> Iterator[None]:
    """While active, nn.TransformerEncoder refuses a padding mask where eager PyTorch would use nested tensors."""
    guarded = [m for m in model.modules() if _nests(m)]
    try:
        for module in guarded:
            vars(module)["forward"] = _guard(module.forward)
        yield
    finally:
        for module in guarded:
            vars(module).pop("forward", None)


def _nests(module: nn.Module) -> bool:
    return (
        isinstance(module, nn.TransformerEncoder)
        and type(module).forward is nn.TransformerEncoder.forward
        and "forward" not in vars(module)
        and bool(getattr(module, "use_nested_tensor", False))
        and torch.backends.mha.get_fastpath_enabled()
    )


def _guard(forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def wrapper(
        src: torch.Tensor, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool | None = None
    ) -> Any:
        if src.dim() == 3 and mask is None and src_key_padding_mask is not None:
            raise CaptureError(
                "nn.TransformerEncoder with a padding mask returns zeros at padded positions if all padding is at the "
                "end, and other values if not, since it uses nested tensors, which are not supported in a graph",
                hint="build it with enable_nested_tensor=False, or call torch.backends.mha.set_fastpath_enabled(False)",
            )
        return forward(src, mask, src_key_padding_mask, is_causal)

    return wrapper
