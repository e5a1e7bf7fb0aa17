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

from t2n_core.check.samples import Sample
from t2n_core.torch_graph.capture.containers import preserve_containers
from t2n_core.torch_graph.capture.quiet import quiet
from t2n_core.torch_graph.capture.reachable import is_foreign

Note: TypeAlias = tuple[str, float, float | None, str, bool]
"""A comparison with its two operands, its place in the code and its answer; or what stands in `_NUMBERS`."""
_LAYOUT_QUESTIONS = (torch.Tensor.is_contiguous, torch.Tensor.stride)
_NUMBERS = ("len", "__int__", *(one.__name__ for one in _LAYOUT_QUESTIONS))
"""Names of notes of sizes that became plain numbers or a layout: what is asked of these is not seen here."""
_CALLS = 6
"""Most samples that the model runs on to find both answers, half of them the smallest."""
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
        if func in _LAYOUT_QUESTIONS and not is_foreign(sys._getframe(1).f_globals.get("__name__")):
            self.notes.append((func.__name__, 0, None, "", bool(result)))
        if type(result) is int:
            if getattr(func, "__name__", "") == "__len__":  # `len` makes a plain number of whatever comes from here
                self.notes.append(("len", result, None, "", True))
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
        frame = sys._getframe(1)
        module = frame.f_globals.get("__name__")
        answer = plain(self, *others)
        if module is None or not is_foreign(module):
            other = others[0] if others and isinstance(others[0], int | float) else None
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}:{frame.f_lasti}"
            self.notes.append((name, self, other, place, bool(answer)))
        return answer

    return method


def leaves_open(
    model: Any,
    run: Callable[[Sequence[torch.Tensor]], Any],
    first: Sequence[Note],
    samples: Sequence[Sample],
    other: Sample | None,
) -> bool:
    """Return whether a model's own code asks about sizes what not all samples together answer in both ways.

    False where no comparison depends on the sizes of a call. True where a size becomes a plain number, which can be
    asked anything.

    Args:
        model: the module, which stays as it is.
        run: runs the model on tensors.
        first: the notes of the example.
        samples: the other calls.
        other: one of these, of other sizes; None if the model is known to run at no other sizes.
    """
    if other is None:
        return bool(first)
    second = notes_of(model, run, other)
    if first == second:
        return False
    if any(note[0] in _NUMBERS for note in (*first, *second)):
        return True
    paths = [_path(first), _path(second)]
    by_size = sorted(samples, key=lambda sample: sum(array.size for array in sample.inputs))
    for sample in [*by_size[: _CALLS // 2], *by_size[_CALLS // 2 :][-_CALLS // 2 :]]:
        if not _is_open(paths):
            return False
        paths.append(_path(notes_of(model, run, sample)))
    return _is_open(paths)


def notes_of(model: Any, run: Callable[[Sequence[torch.Tensor]], Any], sample: Sample) -> list[Note]:
    """Return what a model's own code asks about sizes in one run, up to its end if the model fails.

    A model that asks nothing does the same at all sizes.
    """
    recording = RecordingSizes()
    with preserve_containers(model), quiet(), torch.no_grad(), suppress(Exception), recording:
        run([torch.from_numpy(np.array(array)) for array in sample.inputs])
    return recording.notes


def _path(notes: Sequence[Note]) -> tuple[tuple[str, bool], ...]:
    """Return the answers of one run by their places, those to a comparison of the same two numbers once."""
    answers = {(name, operand, other): (place, answer) for name, operand, other, place, answer in reversed(notes)}
    return tuple(dict.fromkeys(reversed(answers.values())))


def _is_open(paths: Sequence[tuple[tuple[str, bool], ...]]) -> bool:
    """Return whether some comparison, after the same answers before it, has one answer alone."""
    seen = {path[: place + 1] for path in paths for place in range(len(path))}
    return any((*path[:-1], (path[-1][0], not path[-1][1])) not in seen for path in seen)


for _kind, _base in ((_Int, int), (_Float, float)):
    for _name in _COMPUTES:
        if hasattr(_base, _name):
            setattr(_kind, _name, _computing(_name, getattr(_base, _name)))
    for _name in _COMPARES:
        setattr(_kind, _name, _comparing(_name, getattr(_base, _name)))


__all__ = ["RecordingSizes", "leaves_open", "notes_of"]
