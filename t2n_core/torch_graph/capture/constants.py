"""Track the elements of a model's constants during capture, so that its Python code may read them.

Capture replaces buffers by tensors without elements, so `if self.flag:`, `x[:, self.mask]` or `self.scale.item()`
looks data-dependent. Here the elements of parameters and buffers, and of tensors computed from these and from Python
numbers alone, are kept beside those tensors. A model that writes to such a buffer is refused: its next call would read
other elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import torch

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.compat.private import WeakIdKeyDictionary, _disable_current_modes, pytree

_LARGEST: Final = 1 << 16
"""Most elements of a tensor that is tracked."""
_READING: Final = frozenset({"item", "tolist", "__bool__", "__int__", "__float__", "__index__", "is_nonzero", "equal"})
_FACTORIES: Final = frozenset(
    "tensor as_tensor scalar_tensor arange linspace ones zeros full eye triu_indices tril_indices".split()
)
_OF_ELEMENTS: Final = frozenset("nonzero argwhere unique unique_consecutive masked_select bincount".split())
"""Functions whose results have a shape that depends on elements."""
_RANDOM: Final = ("rand", "normal", "uniform", "bernoulli", "multinomial", "dropout", "poisson", "exponential")
"""Parts of the names of functions that draw elements."""
_WRITING: Final = frozenset(
    f"__{name}__" for name in ("setitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "iand", "ior")
)
Plain = Callable[[Any, Any], Any]
"""Calls a function with these arguments and keyword arguments, without tracking elements."""


class Constants:
    """The elements of the constant tensors of one capture of a module."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module
        small = ((name, t.detach()) for name, t in _tensors(module) if t.numel() <= _LARGEST)
        self._stored = {name: t.clone() for name, t in small}
        self._places = {t.untyped_storage().data_ptr() for t in self._stored.values()}
        self._elements: Any = WeakIdKeyDictionary()

    def call(self, func: Callable[..., Any], name: str, args: Any, kwargs: Any, plain: Plain) -> Any:
        """Return the result of a function call. Raises CaptureError for a write to a buffer or parameter."""
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        writes = name in _WRITING or (name.endswith("_") and not name.endswith("__"))
        if writes and tensors:
            self._refuse_write(tensors[0])
        constant = all(self._elements_of(t) is not None for t in tensors) and (bool(tensors) or name in _FACTORIES)
        if not constant or _has_sizes((args, kwargs)) or any(word in name for word in _RANDOM):
            if writes and tensors:
                self._forget(tensors[0])
            return self._select_by_positions(name, args, kwargs, plain)
        real = self._compute(func, args, kwargs)
        if name in _READING:
            return real
        if name in _OF_ELEMENTS or self._chooses(name, args, kwargs):
            return pytree.tree_map_only(torch.Tensor, self._constant, real)
        result = plain(args, kwargs)
        for leaf, value in zip(pytree.tree_leaves(result), pytree.tree_leaves(real), strict=True):
            if isinstance(leaf, torch.Tensor) and value.numel() <= _LARGEST:
                self._elements[leaf] = value
        return result

    def _elements_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return the elements of a tensor; None if they depend on inputs, or if there are too many."""
        if tensor not in self._elements:
            name = next((name for name, candidate in _tensors(self._module) if candidate is tensor), None)
            if name is None or name not in self._stored:
                return None
            self._elements[tensor] = self._stored[name]
        elements: torch.Tensor = self._elements[tensor]
        return elements

    def _compute(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        args, kwargs = pytree.tree_map_only(torch.Tensor, self._elements_of, (args, kwargs))
        with _disable_current_modes(), torch.no_grad():
            return func(*args, **kwargs)

    def _constant(self, real: torch.Tensor) -> torch.Tensor:
        tensor = torch.tensor(real.tolist(), dtype=real.dtype).reshape(real.shape)
        self._elements[tensor] = real
        return tensor

    def _refuse_write(self, tensor: torch.Tensor) -> None:
        real = self._elements_of(tensor)
        if real is not None and real.untyped_storage().data_ptr() in self._places:
            raise CaptureError(
                "the model's Python reads elements of its buffers, and the model writes to one of them",
                hint="keep a number that Python reads outside buffers",
            )

    def _forget(self, tensor: torch.Tensor) -> None:
        """Stop tracking the elements of a tensor that is written to, and of all views of the same memory."""
        real = self._elements_of(tensor)
        if real is None:
            return
        address = real.untyped_storage().data_ptr()
        for other, value in list(self._elements.items()):
            if value.untyped_storage().data_ptr() == address:
                del self._elements[other]

    def _chooses(self, name: str, args: Any, kwargs: Any) -> bool:
        """Return whether the elements of the arguments decide how many elements a call returns."""
        if name == "__getitem__":
            return any(map(_is_mask, _items(args[1])))
        if name == "where":
            return len(args) + len(kwargs) == 1
        return name == "repeat_interleave" and any(isinstance(a, torch.Tensor) for a in (*args[1:], *kwargs.values()))

    def _select_by_positions(self, name: str, args: Any, kwargs: Any, plain: Plain) -> Any:
        """Return the result of a call on non-constant tensors, with constant masks or counts as positions."""
        if name in ("__getitem__", "__setitem__"):
            x, index, *value = args
            items = [position for item in _items(index) for position in self._positions_of(item)]
            args = (x, items[0] if len(items) == 1 else tuple(items), *value)
        elif name == "repeat_interleave" and args:
            counts, axis = _argument(args, kwargs, "repeats", 1), _argument(args, kwargs, "dim", 2)
            real = self._elements_of(counts) if isinstance(counts, torch.Tensor) else None
            if real is not None and isinstance(axis, int) and real.dim() == 1:
                with _disable_current_modes():
                    places = torch.arange(len(real)).repeat_interleave(real)
                return args[0].index_select(axis, self._constant(places))
        return plain(args, kwargs)

    def _positions_of(self, item: Any) -> list[Any]:
        real = self._elements_of(item) if _is_mask(item) else None
        if real is None:
            return [item]
        with _disable_current_modes():
            places = real.nonzero(as_tuple=True)
        return [self._constant(indices) for indices in places]


def _argument(args: Any, kwargs: Any, name: str, position: int) -> Any:
    return args[position] if len(args) > position else kwargs.get(name)


def _tensors(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def _items(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _is_mask(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.dtype in (torch.bool, torch.uint8)


def _has_sizes(values: Any) -> bool:
    return any(isinstance(leaf, torch.SymInt | torch.SymFloat) for leaf in pytree.tree_leaves(values))
