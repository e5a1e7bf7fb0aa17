"""Arguments that are neither tensors nor containers of PyTorch: whether they hold tensors, and copies of them."""

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
    waiting, seen = [value], dict[int, Any]()
    while waiting:
        one = waiting.pop()
        if isinstance(one, torch.Tensor):
            return True
        if id(one) not in seen and not isinstance(one, _WITHOUT_PARTS):
            seen[id(one)] = one  # kept, so that no other object takes its id
            waiting += _parts(one)
    return False


def _parts(value: Any) -> Iterator[Any]:
    yield from getattr(value, "__dict__", {}).values()
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            yield getattr(value, name, None)
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, _SEQUENCES):
        yield from value
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.MethodType):
        yield value.__self__
    elif isinstance(value, types.FunctionType):
        yield from (value.__defaults__, value.__kwdefaults__)
        for cell in value.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # a variable without a value yet
                continue


def own_copy(value: Any) -> Any:
    """Return a copy of an object for one call, which may change it; the object itself where it cannot be copied, and
    where it has no parts: a model may ask if it `is` that one."""
    try:
        if next(_parts(value), value) is value:
            return value
        return copy.deepcopy(value)
    except Exception:  # a lock, a module of Python, a class that forbids it
        return value


__all__ = ["holds_tensor", "own_copy"]
