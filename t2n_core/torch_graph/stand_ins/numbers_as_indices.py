"""Index with integer tensors without axes, `x[:, i]` and `cache[:, i] = row`, without their numbers.

PyTorch would read the number of `i`, which is unknown during capture: here the tensor itself picks the place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.compat.patches import replaced

_INDEX = operator("aten::index.Tensor")
_MASKS = (torch.bool, torch.uint8)
Picks = list[tuple[int, torch.Tensor]]


@contextmanager
def numbers_as_indices() -> Iterator[None]:
    """While active, torch.export does not ask tensors for the numbers that they pick."""

    def replacement(plain: Any) -> Any:
        def override(self: Any, func: Any, args: Any, kwargs: Any) -> Any:
            if func is torch.Tensor.__getitem__ and any(map(_is_number, _items(args[1]))):
                picks, rest = _split(*args)
                args = (_all_picked(args[0], picks), rest)
            return plain(self, func, args, kwargs)

        return override

    with replaced("torch._export.non_strict_utils._NonStrictTorchFunctionHandler._override", replacement):
        yield


def getitem(x: torch.Tensor, index: Any) -> torch.Tensor:
    """`x[index]`: first along the axes with a number, then the rest, as PyTorch does it."""
    picks, rest = _split(x, index)
    return torch.Tensor.__getitem__(_all_picked(x, picks), rest) if picks else torch.Tensor.__getitem__(x, index)


def setitem(x: torch.Tensor, index: Any, value: Any) -> None:
    """`x[index] = value`: what stands at a number is taken out, written to and put back."""
    picks, _ = _split(x, index)
    if not picks:
        torch.Tensor.__setitem__(x, index, value)
        return
    (axis, number), items = picks[0], _items(index)
    at = next(i for i, item in enumerate(items) if item is number)
    inner = _picked(x, axis, number).clone()
    setitem(inner, (*items[:at], *items[at + 1 :]), value)
    place = torch.where(number < 0, number + x.shape[axis], number)
    x.index_copy_(axis, place.reshape(1).long(), inner.unsqueeze(axis))


def select(input: torch.Tensor, dim: int, index: Any) -> torch.Tensor:
    """`torch.select`, also with a tensor as `index`."""
    return _picked(input, dim, index) if _is_number(index) else torch.select(input, dim, index)


def _all_picked(x: torch.Tensor, picks: Picks) -> torch.Tensor:
    for axis, number in reversed(picks):
        x = _picked(x, axis, number)
    return x


def _picked(x: torch.Tensor, axis: int, number: torch.Tensor) -> torch.Tensor:
    index = [*[None] * axis, number.reshape(1).long()]
    found: torch.Tensor = _INDEX(x, index)
    return found.squeeze(axis)


def _items(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _split(x: torch.Tensor, index: Any) -> tuple[Picks, tuple[Any, ...]]:
    """Return the axes with a number, and the index without these."""
    items = _items(index)
    if not any(map(_is_number, items)):
        return [], items
    spared = x.dim() - sum(map(_axes, items))
    picks: Picks = []
    rest: list[Any] = []
    axis = 0
    for item in items:
        if _is_number(item):
            picks.append((axis, item))
        else:
            rest.append(item)
        axis += spared if item is Ellipsis else _axes(item)
    return picks, tuple(rest)


def _is_number(item: Any) -> bool:
    if not isinstance(item, torch.Tensor) or item.dim() or item.dtype in _MASKS:
        return False
    return not item.is_floating_point() and not item.is_complex()


def _axes(item: Any) -> int:
    """Return the number of axes that an item of an index takes."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    return item.dim() if isinstance(item, torch.Tensor) and item.dtype in _MASKS else 1
