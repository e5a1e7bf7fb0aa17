"""Integers that note what Python compares them with: the sizes of tensors, while a model runs.

The model runs as it is, with numbers in its tensors, apart from every capture. `x.shape[1]` is an integer as ever, and
so is what is computed from it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from t2n_core.check.samples import Array
from t2n_core.torch_graph.capture.containers import preserve_containers
from t2n_core.torch_graph.capture.quiet import quiet
from t2n_core.torch_graph.capture.reachable import is_foreign

Note: TypeAlias = tuple[str, float, float | None]
"""A comparison with its two numbers, or a size that became a plain number."""
_COMPARES = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__", "__int__")
_COMPUTES = (
    *("__add__", "__sub__", "__mul__", "__floordiv__", "__mod__", "__pow__", "__truediv__"),
    *("__radd__", "__rsub__", "__rmul__", "__rfloordiv__", "__rmod__", "__rpow__", "__rtruediv__"),
    *("__neg__", "__abs__", "__ceil__", "__floor__", "__trunc__", "__round__"),
)


class RecordingSizes(TorchFunctionMode):
    """While active, the sizes of tensors note the comparisons of code that is not PyTorch's own."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[Note] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Size):
            return torch.Size([_recorded(size, self.notes) for size in result])
        if type(result) is int:
            if getattr(func, "__name__", "") == "__len__":  # `len` makes a plain number of whatever comes from here
                self.notes.append(("len", result, None))
            return _recorded(result, self.notes)
        return result


class _Int(int):
    notes: list[Note]
    __hash__ = int.__hash__


class _Float(float):
    notes: list[Note]
    __hash__ = float.__hash__


def _recorded(result: Any, notes: list[Note]) -> Any:
    """Return a number as one that notes; anything else as it is."""
    kind: type[_Int] | type[_Float] | None = _Int if type(result) is int else _Float if type(result) is float else None
    if kind is None:
        return result
    number = kind(result)
    number.notes = notes
    return number


def _computing(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        result = plain(self, *others)
        if result is NotImplemented and others and isinstance(others[0], float):  # `T * 0.5` is a float's own product
            result = getattr(float, name)(float(self), *others)
        return _recorded(result, self.notes)

    return method


def _comparing(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        module = sys._getframe(1).f_globals.get("__name__")
        if module is None or not is_foreign(module):
            other = others[0] if others and isinstance(others[0], int | float) else None
            self.notes.append((name, self, other))
        return plain(self, *others)

    return method


def compares_sizes(
    model: Any, run: Callable[[Sequence[torch.Tensor]], Any], example: Sequence[Array], other: Sequence[Array] | None
) -> bool:
    """Return whether a model's own code compares sizes that differ from one call to another, or makes numbers of them.

    With one call alone, any sizes count.

    Args:
        model: the module, which stays as it is.
        run: runs the model on tensors.
        example: inputs of the one call.
        other: inputs of the other call, of other sizes; None if the model is known to run at no other sizes.
    """
    notes: list[list[Note]] = []
    for arrays in (example,) if other is None else (example, other):
        with preserve_containers(model), quiet(), torch.no_grad(), suppress(Exception), RecordingSizes() as sizes:
            notes.append(sizes.notes)
            run([torch.from_numpy(np.array(array)) for array in arrays])
    return bool(notes[0]) if other is None else notes[0] != notes[1]


for _kind, _base in ((_Int, int), (_Float, float)):
    for _name in _COMPUTES:
        if hasattr(_base, _name):
            setattr(_kind, _name, _computing(_name, getattr(_base, _name)))
    for _name in _COMPARES:
        setattr(_kind, _name, _comparing(_name, getattr(_base, _name)))


__all__ = ["RecordingSizes", "compares_sizes"]
