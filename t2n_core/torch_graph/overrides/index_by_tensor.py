"""Index by 0-d integer tensors and by sizes, `x[:, i]` and `y[:, T // 2] = row`, without reading their values.

PyTorch would read the value of `i`, which is unknown during capture: here the tensor itself is the index. At an index
that is a dynamic size, the view along the other axes is read or written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.overrides.registry import override, patch

_INDEX = operator("aten::index.Tensor")
_READS = "capture would read the value of an index tensor, which is not known"
_MASKS = (torch.bool, torch.uint8)
Picks = list[tuple[int, Any]]


@patch("torch._export.non_strict_utils._NonStrictTorchFunctionHandler._override", reason=_READS)
def override_without_reads(plain: Any) -> Any:
    """Return torch.export's own replacement of calls, without its reads of index tensors."""

    def index(self: Any, func: Any, args: Any, kwargs: Any) -> Any:
        if func is torch.Tensor.__getitem__:
            args = _simplify(*args)
        return plain(self, func, args, kwargs)

    return index


@override(torch.Tensor.__getitem__, reason=_READS)
def getitem(x: torch.Tensor, index: Any) -> torch.Tensor:
    """`x[index]`: first along the axes indexed by scalars, then the rest, as in PyTorch."""
    return torch.Tensor.__getitem__(*_simplify(x, index))


@override(torch.Tensor.__setitem__, reason=_READS)
def setitem(x: torch.Tensor, index: Any, value: Any) -> None:
    """`x[index] = value`: the slice at a scalar index is read, modified and written back."""
    x, index = _at_sizes(x, index)
    picks, _ = _split(x, index, _is_scalar_index)
    if not picks:
        torch.Tensor.__setitem__(x, index, value)
        return
    (axis, number), items = picks[0], _items(index)
    at = next(i for i, item in enumerate(items) if item is number)
    inner = _pick(x, axis, number).clone()
    setitem(inner, (*items[:at], *items[at + 1 :]), value)
    position = torch.where(number < 0, number + x.shape[axis], number)
    x.index_copy_(axis, position.reshape(1).long(), inner.unsqueeze(axis))


@override(torch.select, torch.Tensor.select, reason=_READS)
def select(input: torch.Tensor, dim: int, index: Any) -> torch.Tensor:
    """`torch.select`, also with a tensor as `index`."""
    return _pick(input, dim, index) if _is_scalar_index(index) else torch.select(input, dim, index)


def _simplify(x: torch.Tensor, index: Any) -> tuple[torch.Tensor, Any]:
    """Return the tensor and the rest of the index after the scalar items are applied."""
    if any(isinstance(item, torch.Tensor) for item in _items(index)):
        x, index = _at_sizes(x, index)  # without tensors torch.export does it
    picks, rest = _split(x, index, _is_scalar_index)
    for axis, number in reversed(picks):
        x = _pick(x, axis, number)
    return (x, rest) if picks else (x, index)


def _at_sizes(x: torch.Tensor, index: Any) -> tuple[torch.Tensor, Any]:
    """Return the view at the indices that are dynamic sizes, and the rest of the index."""
    places, rest = _split(x, index, _is_size)
    for axis, position in reversed(places):
        x = torch.select(x, axis, position)
    return (x, rest) if places else (x, index)


def _pick(x: torch.Tensor, axis: int, number: torch.Tensor) -> torch.Tensor:
    index = [*[None] * axis, number.reshape(1).long()]
    selection: torch.Tensor = _INDEX(x, index)
    return selection.squeeze(axis)


def _items(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _split(x: torch.Tensor, index: Any, is_pick: Callable[[Any], bool]) -> tuple[Picks, tuple[Any, ...]]:
    """Return the items that are picks with their axes, and the index without them."""
    items = _items(index)
    if not any(map(is_pick, items)):
        return [], items
    spared = x.dim() - sum(map(_axes, items))
    picks: Picks = []
    rest: list[Any] = []
    axis = 0
    for item in items:
        if is_pick(item):
            picks.append((axis, item))
        else:
            rest.append(item)
        axis += spared if item is Ellipsis else _axes(item)
    return picks, tuple(rest)


def _is_scalar_index(item: Any) -> bool:
    if not isinstance(item, torch.Tensor) or item.dim() or item.dtype in _MASKS:
        return False
    return not item.is_floating_point() and not item.is_complex()


def _is_size(item: Any) -> bool:
    return isinstance(item, torch.SymInt)


def _axes(item: Any) -> int:
    """Return the number of axes that an item of an index takes."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    return item.dim() if isinstance(item, torch.Tensor) and item.dtype in _MASKS else 1
