"""Integers that record their comparisons in Python: the sizes of tensors, while a model runs.

The model runs as it is, on real tensors, independent of any capture. `x.shape[1]` is an integer as usual, and so is
everything computed from it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from t2n_core.parity.samples import Sample
from t2n_core.torch_graph.capture.containers import replace_stored
from t2n_core.torch_graph.compat.quiet import quiet
from t2n_core.torch_graph.reachable import is_foreign

_LAYOUT_QUESTIONS = (torch.Tensor.is_contiguous, torch.Tensor.stride)
_NUMBERS = ("len", "__int__", "__float__", *(question.__name__ for question in _LAYOUT_QUESTIONS))
"""Names of notes of sizes that became plain numbers or a layout, whose later comparisons are not recorded."""
_CALLS = 6
"""Most samples that the model runs on to find both answers, half of them the smallest."""
_COMPARES = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__", "__int__", "__float__")
_COMPUTES = (
    *("__add__", "__sub__", "__mul__", "__floordiv__", "__mod__", "__pow__", "__truediv__"),
    *("__radd__", "__rsub__", "__rmul__", "__rfloordiv__", "__rmod__", "__rpow__", "__rtruediv__"),
    *("__neg__", "__abs__", "__ceil__", "__floor__", "__trunc__", "__round__"),
)


class Note(NamedTuple):
    """A comparison of a size, or one of `_NUMBERS`."""

    name: str
    operand: float
    other: float | None
    place: str
    """File, line and instruction."""
    answer: bool
    sizes: frozenset[int] | None
    """The indices in `Run.sizes` of the sizes that the operands are computed from; None if unknown."""
    read: int
    """The number of sizes that were read before."""


@dataclass(slots=True)
class Run:
    """The sizes that a model's own code read in one run, and its comparisons of them."""

    sizes: list[int] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def note(
        self, name: str, operand: float, other: float | None, location: str, answer: bool, sizes: frozenset[int] | None
    ) -> None:
        self.notes.append(Note(name, operand, other, location, answer, sizes, len(self.sizes)))


class RecordingSizes(TorchFunctionMode):
    """While active, the sizes of tensors record comparisons in code other than PyTorch's own."""

    def __init__(self) -> None:
        super().__init__()
        self.run = Run()

    def read(self, size: int) -> int:
        """Return a size as a recording integer."""
        self.run.sizes.append(size)
        recorded: int = _as_recording(size, self, frozenset({len(self.run.sizes) - 1}))
        return recorded

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Size):
            return torch.Size([self.read(size) for size in result])
        if func in _LAYOUT_QUESTIONS and not is_foreign(sys._getframe(1).f_globals.get("__name__")):
            self.run.note(func.__name__, 0, None, "", bool(result), None)
        if type(result) is int:
            size = self.read(result)
            if getattr(func, "__name__", "") == "__len__":  # `len` converts any result to a plain number
                self.run.note("len", result, None, "", True, frozenset({len(self.run.sizes) - 1}))
            return size
        return result


class _Int(int):
    recording: RecordingSizes
    sizes: frozenset[int]
    __hash__ = int.__hash__


class _Float(float):
    recording: RecordingSizes
    sizes: frozenset[int]
    __hash__ = float.__hash__


def _as_recording(result: Any, recording: RecordingSizes, sizes: frozenset[int]) -> Any:
    """Return a number as a recording one; anything else as it is."""
    kind: type[_Int] | type[_Float] | None = _Int if type(result) is int else _Float if type(result) is float else None
    if kind is None:
        return result
    number = kind(result)
    number.recording, number.sizes = recording, sizes
    return number


def _plain(value: Any) -> Any:
    """Return the plain number of a recording one; anything else as it is."""
    if isinstance(value, _Int):
        return int.__int__(value)
    return float.__float__(value) if isinstance(value, _Float) else value


def _sizes_of(number: Any, others: Sequence[Any]) -> frozenset[int]:
    """Return the sizes that the operands are computed from."""
    sizes: frozenset[int] = number.sizes
    return sizes.union(*(other.sizes for other in others if isinstance(other, _Int | _Float)))


def _computing(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        result = plain(self, *others)
        if result is NotImplemented and others and isinstance(others[0], float):  # `T * 0.5` is a float's own product
            result = getattr(float, name)(int.__float__(self), *others)
        return _as_recording(result, self.recording, _sizes_of(self, others))

    return method


def _comparing(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        frame = sys._getframe(1)
        module = frame.f_globals.get("__name__")
        answer = plain(self, *others)
        if module is None or not is_foreign(module):
            other = _plain(others[0]) if others and isinstance(others[0], int | float) else None
            location = f"{frame.f_code.co_filename}:{frame.f_lineno}:{frame.f_lasti}"
            self.recording.run.note(name, _plain(self), other, location, bool(answer), _sizes_of(self, others))
        return answer

    return method


def run_of(model: Any, run: Callable[[Sequence[torch.Tensor]], Any], sample: Sample) -> Run:
    """Return the comparisons of sizes by a model's own code in one run, up to the failure if the model fails.

    A model without any computes the same at all sizes. The run leaves in a model what any call does: stored sizes
    become plain numbers.
    """
    recording = RecordingSizes()
    recorded, alive = recording.run, weakref.ref(recording)
    with quiet(), torch.no_grad(), suppress(Exception), recording:
        run([torch.from_numpy(np.array(array)) for array in sample.inputs])
    del recording
    if alive() is not None:  # only recording numbers refer to it
        replace_stored(model, _plain)
    return recorded


def varying(runs: Sequence[Run]) -> list[list[Note]]:
    """Return the notes of each run that depend on a size that differs between runs.

    The sizes of two runs are compared as far as both took the same path. A size that no other run has read on the same
    path may be any size.
    """
    dependent = []
    for run in runs:
        common, differ = 0, set[int]()
        for other in runs:
            if other is not run:
                alike = _alike(run, other)
                common = max(common, alike)
                differ |= {k for k in range(alike) if run.sizes[k] != other.sizes[k]}
        dependent.append(
            [note for note in run.notes if note.sizes is None or any(k >= common or k in differ for k in note.sizes)]
        )
    return dependent


def _alike(run: Run, other: Run) -> int:
    """Return the number of sizes that two runs read on the same path: before the first note with another answer."""
    alike = 0
    for note, two in zip(run.notes, other.notes, strict=False):
        if (note.name, note.place, note.read) != (two.name, two.place, two.read):
            return alike
        alike = note.read
        if note.answer != two.answer:
            return alike
    same_end = len(run.notes) == len(other.notes) and len(run.sizes) == len(other.sizes)
    return len(run.sizes) if same_end else alike


def leaves_open(
    model: Any, run: Callable[[Sequence[torch.Tensor]], Any], runs: Sequence[Run], samples: Sequence[Sample]
) -> bool:
    """Return whether a model's own code compares sizes such that the samples do not cover both answers.

    False if no comparison depends on the sizes of a call. True if a size becomes a plain number, whose comparisons are
    unknown, or if the model is not known to run at other sizes.

    Args:
        model: the module, which stays as it is.
        run: runs the model on tensors.
        runs: the example's run, and the run at other sizes if there is one.
        samples: the other calls.
    """
    if len(runs) < 2:
        return any(record.notes for record in runs)
    notes = varying(runs)
    if any(note.name in _NUMBERS for run_notes in notes for note in run_notes):
        return True
    recorded = list(runs)
    by_size = sorted(samples, key=lambda sample: sum(array.size for array in sample.inputs))
    for sample in [*by_size[: _CALLS // 2], *by_size[_CALLS // 2 :][-_CALLS // 2 :]]:
        if not _is_open(varying(recorded)):
            return False
        recorded.append(run_of(model, run, sample))
    return _is_open(varying(recorded))


def _path(notes: Sequence[Note]) -> tuple[tuple[str, bool], ...]:
    """Return the answers of one run by source position; repeated comparisons of the same two numbers count once."""
    answers = {(note.name, note.operand, note.other): (note.place, note.answer) for note in reversed(notes)}
    return tuple(dict.fromkeys(reversed(answers.values())))


def _is_open(runs: Sequence[Sequence[Note]]) -> bool:
    """Return whether some comparison, after the same answers before it, has only one answer."""
    paths = [_path(notes) for notes in runs]
    seen = {path[: index + 1] for path in paths for index in range(len(path))}
    return any((*path[:-1], (path[-1][0], not path[-1][1])) not in seen for path in seen)


for _kind, _base in ((_Int, int), (_Float, float)):
    for _name in _COMPUTES:
        if hasattr(_base, _name):
            setattr(_kind, _name, _computing(_name, getattr(_base, _name)))
    for _name in _COMPARES:
        setattr(_kind, _name, _comparing(_name, getattr(_base, _name)))
