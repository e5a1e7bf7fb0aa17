"""Arguments that are neither tensors nor PyTorch's containers: their parts, and copies of them."""

from __future__ import annotations

import copy
import enum
import functools
import types
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import torch

_WITHOUT_PARTS = (str, bytes, int, float, complex, enum.Enum, type, types.ModuleType)
_SEQUENCES = (list, tuple, set, frozenset, deque)


def holds_tensor(value: Any) -> bool:
    """Return whether an object holds a tensor: as an attribute, an item, or a variable of a function, at any depth."""
    return any(isinstance(part, torch.Tensor) for _, part in parts_at_any_depth(value))


def parts_at_any_depth(value: Any, atoms: tuple[type, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield an object and everything that it holds, each once, with the path of attributes, keys and indices.

    The parts of tensors and of objects of the classes in `atoms` are left out.
    """
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    seen: dict[int, Any] = {}
    while waiting:
        path, item = waiting.pop()
        if id(item) in seen and not isinstance(item, _WITHOUT_PARTS):
            continue
        seen[id(item)] = item  # kept, so that no other object takes its id
        yield path, item
        if not isinstance(item, (*_WITHOUT_PARTS, torch.Tensor, *atoms)):
            waiting += reversed([((*path, key), part) for key, part in _parts(item)])


def part_at(value: Any, path: tuple[Any, ...]) -> Any:
    """Return the part of an object at a path of attributes, keys and indices; None if there is none."""
    for key in path:
        value = next((part for name, part in _parts(value) if type(name) is type(key) and name == key), None)
    return value


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the direct parts of an object with their names, keys or indices."""
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            yield name, getattr(value, name, None)
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, _SEQUENCES):
        yield from enumerate(value)
    elif isinstance(value, functools.partial):
        yield from enumerate((value.func, value.args, value.keywords))
    elif isinstance(value, types.MethodType):
        yield "self", value.__self__
    elif isinstance(value, types.FunctionType):
        yield from enumerate((value.__defaults__, value.__kwdefaults__))
        for index, cell in enumerate(value.__closure__ or ()):
            try:
                yield index, cell.cell_contents
            except ValueError:  # a variable that is not assigned yet
                continue


def own_copy(value: Any) -> Any:
    """Return a copy of an object for one call, which may change it.

    Return the object itself if it cannot be copied, or has no parts, since a model may compare its identity.
    """
    try:
        if next(_parts(value), None) is None:
            return value
        return copy.deepcopy(value)
    except Exception:  # a lock, a module of Python, a class that forbids it
        return value
