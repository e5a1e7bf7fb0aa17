"""Elements of small tensors as numbers and sizes: results of functions that move, combine or compute them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from t2n_core.torch_graph.compat.private import _disable_current_modes, pytree

Elements = NDArray[np.object_]
"""Integers, floats and sizes in the shape of a tensor; None for an element that is unknown."""
INTEGERS: Final = (torch.int64, torch.int32)
_FLOATS: Final = (torch.float32, torch.float64)
_MOST: Final = 256
"""Elements of a tensor beyond which it is not followed."""
MAKERS: Final = frozenset({"tensor", "as_tensor", "scalar_tensor"})
FACTORIES: Final = frozenset({"zeros", "ones", "full", "empty", "new_zeros", "new_ones", "new_full", "new_empty"})
_JOINING: Final = frozenset({"stack", "cat", "concat", "concatenate", "hstack", "vstack"})
_LIKE_ANOTHER: Final = frozenset({"expand_as", "view_as", "reshape_as"})
"""Functions of a tensor and of one whose shape alone is read."""
_MOVING: Final = frozenset(
    """getitem select unbind split tensor_split chunk narrow diagonal view reshape flatten unflatten ravel squeeze
    unsqueeze transpose t permute movedim swapaxes expand repeat tile flip roll to long int float double clone detach
    contiguous alias""".split()
)
"""Functions of one tensor whose results hold its elements."""
_SHAPE: Final = "shape_as_tensor"
OfTensor = Callable[[torch.Tensor], Elements | None]
_WHOLE: Final = (int, torch.SymInt)
_NUMBERS: Final = (*_WHOLE, float, torch.SymFloat)
_as_float: Any = torch.sym_float
_maximum: Any = np.frompyfunc(torch.sym_max, 2, 1)
_minimum: Any = np.frompyfunc(torch.sym_min, 2, 1)


def _swapped(formula: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: formula(b, a)


_FORMULAS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys(("add", "radd"), operator.add),
    **dict.fromkeys(("sub", "subtract"), operator.sub),
    "rsub": _swapped(operator.sub),
    **dict.fromkeys(("mul", "rmul", "multiply"), operator.mul),
    **dict.fromkeys(("floordiv", "floor_divide"), operator.floordiv),
    "rfloordiv": _swapped(operator.floordiv),
    **dict.fromkeys(("mod", "remainder"), operator.mod),
    "maximum": _maximum,
    "minimum": _minimum,
}
"""Functions of two numbers for each pair of elements."""
_EXACT: Final = frozenset({"add", "radd", "sub", "subtract", "rsub"})
"""Functions that are followed for floats too. Others round in float32 otherwise than in Python, so a result may
truncate to another integer."""
_REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "sum": np.sum,
    "prod": np.prod,
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    **dict.fromkeys(("max", "amax"), _maximum.reduce),
    **dict.fromkeys(("min", "amin"), _minimum.reduce),
}


_FOLLOWED: Final = frozenset().union(
    MAKERS, FACTORIES, _JOINING, _LIKE_ANOTHER, _MOVING, _FORMULAS, _REDUCTIONS, {_SHAPE}
)
"""Functions that are followed; every call is asked about."""


def of_data(data: Any, of_tensor: OfTensor) -> Elements | None:
    """Return the elements of nested sequences of numbers, sizes and tensors; None if one of them is unknown."""
    if isinstance(data, torch.Tensor):
        return of_tensor(data)
    if isinstance(data, list | tuple):
        parts = [part for item in data if (part := of_data(item, of_tensor)) is not None]
        alike = len(parts) == len(data) and len({part.shape for part in parts}) == 1
        return np.stack(parts) if alike else None
    if not isinstance(data, _NUMBERS) or isinstance(data, bool):
        return None
    array = np.empty((), dtype=object)
    array[()] = data
    return array


def elements_of_results(
    func: Callable[..., Any], name: str, args: Any, kwargs: Any, result: Any, of_tensor: OfTensor
) -> list[tuple[torch.Tensor, Elements]]:
    """Return the tensors that a call has returned, with their elements; none if these are unknown."""
    if name not in _FOLLOWED:
        return []
    leaves = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    if not leaves or not all(_is_small(leaf) for leaf in leaves):
        return []
    if name in MAKERS and args:
        data = of_data(args[0], of_tensor)
        arrays = [] if data is None else [data]
    elif name == _SHAPE:
        arrays = [np.array([*args[0].shape], dtype=object)]
    elif name in FACTORIES:
        arrays = _factory_elements(func, name, args, kwargs)
    elif name in _MOVING or name in _JOINING or name in _LIKE_ANOTHER:
        arrays = _moved_elements(func, name, args, kwargs, of_tensor)
    elif name in _REDUCTIONS:
        arrays = _reduction(name, args, kwargs, of_tensor)
    else:
        arrays = _formula_elements(name, args, kwargs, of_tensor)
    pairs = zip(leaves, arrays, strict=False)
    return [(leaf, typed) for leaf, array in pairs if (typed := _typed(array, leaf)) is not None]


def elements_after_write(tensor: torch.Tensor, array: Elements, index: Any, value: Elements) -> Elements | None:
    """Return the elements of a tensor after a write at an index; None if the index has tensors or sizes."""
    if _has_symbols(index):
        return None
    with _disable_current_modes():
        places = torch.arange(array.size).reshape(array.shape)[index].numpy()
    after = array.copy()
    after.reshape(-1)[places.reshape(-1)] = np.broadcast_to(value, places.shape).reshape(-1)
    return _typed(after, tensor)


def _is_small(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has a static shape, few elements, and a type whose numbers are exact in Python."""
    if tensor.dtype not in (*INTEGERS, *_FLOATS) or any(isinstance(size, torch.SymInt) for size in tensor.shape):
        return False
    return tensor.numel() <= _MOST


def _typed(array: Elements, tensor: torch.Tensor) -> Elements | None:
    """Return elements with the type of a tensor; None for floats that became integers, since float32 rounds first."""
    if array.shape != tuple(tensor.shape):
        return None
    if tensor.dtype in INTEGERS:
        return array if all(element is None or isinstance(element, _WHOLE) for element in array.flat) else None
    floats = np.empty(array.shape, dtype=object)
    for index, element in np.ndenumerate(array):
        floats[index] = None if element is None else _as_float(element)
    return floats


def _factory_elements(func: Callable[..., Any], name: str, args: Any, kwargs: Any) -> list[Elements]:
    """Return the elements that a factory makes, unknown for `empty`; `new_zeros` takes a tensor first."""
    first = 1 if name.startswith("new_") else 0
    if _has_symbols((args[first:], kwargs)):
        return []
    with _disable_current_modes():
        plain = (*(torch.zeros((), dtype=tensor.dtype) for tensor in args[:first]), *args[first:])
        made = func(*plain, **{key: value for key, value in kwargs.items() if key != "device"})
    elements = np.empty(tuple(made.shape), dtype=object)
    if "empty" not in name:
        elements[...] = np.array(made.tolist(), dtype=object)
    return [elements]


def _moved_elements(func: Callable[..., Any], name: str, args: Any, kwargs: Any, of_tensor: OfTensor) -> list[Elements]:
    """Return what a call does to the elements, by what it does to their numbers."""
    leaves = pytree.tree_leaves((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if name == "view" and any(isinstance(leaf, torch.dtype) for leaf in leaves):
        return []  # the same bytes as other numbers
    if len(tensors) > 1 and name not in _JOINING and name not in _LIKE_ANOTHER:
        return []  # one of them is an index
    arrays = [array for tensor in tensors if (array := of_tensor(tensor)) is not None]
    if not tensors or len(arrays) < len(tensors) or _has_symbols((args, kwargs), tensors=False):
        return []
    firsts = itertools.accumulate((array.size for array in arrays), initial=0)
    with _disable_current_modes():
        places = [
            torch.arange(at, at + array.size).reshape(array.shape) for at, array in zip(firsts, arrays, strict=False)
        ]
        numbered = iter(places)
        args, kwargs = pytree.tree_map_only(torch.Tensor, lambda _: next(numbered), (args, kwargs))
        moved = [leaf.long().numpy() for leaf in pytree.tree_leaves(func(*args, **kwargs))]
    elements = np.concatenate([array.reshape(-1) for array in arrays])
    return [np.asarray(elements[indices], dtype=object) for indices in moved]


def _reduction(name: str, args: Any, kwargs: Any, of_tensor: OfTensor) -> list[Elements]:
    """Return a reduction along one axis, or over all of them."""
    tensor, *axes = args
    axis = axes[0] if axes else kwargs.get("dim")
    array = of_tensor(tensor) if isinstance(tensor, torch.Tensor) else None
    if array is None or {*kwargs} - {"dim", "dtype"} or len(axes) > 1 or not array.size:
        return []
    if not all(isinstance(element, _WHOLE) for element in array.flat):
        return []
    if name in ("max", "min") and axis is not None:
        return []  # these return places as well
    if axis is None:
        array, axis = array.reshape(-1), 0
    return [np.asarray(_REDUCTIONS[name](array, axis=axis), dtype=object)] if isinstance(axis, int) else []


def _formula_elements(name: str, args: Any, kwargs: Any, of_tensor: OfTensor) -> list[Elements]:
    formula = _FORMULAS.get(name)
    if formula is None or len(args) != 2 or kwargs:
        return []
    left, right = (of_data(value, of_tensor) for value in args)
    kinds = _NUMBERS if name in _EXACT else _WHOLE
    if left is None or right is None or not all(isinstance(element, kinds) for element in (*left.flat, *right.flat)):
        return []
    return [np.asarray(formula(left, right), dtype=object)]


def _has_symbols(values: Any, *, tensors: bool = True) -> bool:
    """Return whether there are sizes, or `tensors`, among nested values and in slices."""
    leaves = pytree.tree_leaves(values)
    bounds = [bound for leaf in leaves if isinstance(leaf, slice) for bound in (leaf.start, leaf.stop, leaf.step)]
    if any(isinstance(value, torch.SymInt | torch.SymFloat) for value in (*leaves, *bounds)):
        return True
    return any(isinstance(value, torch.Tensor) for value in (*(leaves if tensors else ()), *bounds))
