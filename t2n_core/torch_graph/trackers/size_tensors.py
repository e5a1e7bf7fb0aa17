"""Tensors whose elements are sizes: `arange(P, P + S)`, `tensor([[H, W]])`, and those computed from such tensors.

If a model uses such an element as a size, `torch.arange(positions[-1] + 1)`, PyTorch would read it from the tensor, and
the size would depend on data. Here it is tracked as an expression beside the tensor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.compat.private import WeakIdKeyDictionary, pytree
from t2n_core.torch_graph.trackers.elements import (
    FACTORIES,
    INTEGERS,
    MAKERS,
    Elements,
    elements_after_write,
    elements_of_results,
    of_data,
)

_COPIES = frozenset({"to", "long", "int", "clone", "detach", "contiguous", "alias"})
_LAST = {"max": 1, "amax": 1, "min": 0, "amin": 0}
_OF_SIZES = frozenset({"zeros", "ones", "empty", "full", "rand", "randn", "arange", "linspace"})
"""Functions that take only numbers, which may be tensors without axes."""
_OF_TENSOR_AND_SIZES = frozenset(
    """new_zeros new_ones new_full new_empty view reshape expand repeat triu tril tile unflatten narrow split getitem
    setitem interpolate pad""".split()
)
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("gt", "ge", "lt", "le", "eq", "ne")
}
_NOT_WRITING = frozenset({"detach_", "requires_grad_"})
_WRITING = frozenset(f"__{name}__" for name in ("setitem", "iadd", "isub", "imul", "ifloordiv", "imod"))


def is_scalar_integer(value: Any) -> bool:
    """Return whether a tensor holds integers and has no axes."""
    return isinstance(value, torch.Tensor) and value.dtype in INTEGERS and value.dim() == 0


def may_make_sizes(name: str, args: Any, kwargs: Any) -> bool:
    """Return whether a function of this name may make a tensor of sizes, also from a scalar integer tensor."""
    if (
        name in MAKERS
        or name in ("arange", "_shape_as_tensor")
        or (name in FACTORIES and kwargs.get("dtype") in INTEGERS)
    ):
        return True
    return name.strip("_") in _FORMULAS and bool(args) and is_scalar_integer(args[0])


def scalar_value(value: Any) -> Any:
    """Return the number or the size that a scalar tensor holds, as far as the capture under way knows it, or None."""
    if torch.overrides.has_torch_function((value,)):
        return torch.overrides.handle_torch_function(scalar_value, (value,), value)
    return None


@dataclass(frozen=True, slots=True)
class Line:
    """base + start + step * i for the elements i of a tensor; a tensor without axes has one, and step 0."""

    start: Any
    step: Any = 0
    base: torch.Tensor | None = None
    """A scalar tensor whose value capture does not know; None for 0."""


class SizeTensors:
    """Tracks the elements of the integer tensors of one capture, as far as they are known."""

    def __init__(self) -> None:
        self._known: Any = WeakIdKeyDictionary()
        """The Line of a tensor, or the elements of a small one of static shape."""
        self._truths: Any = WeakIdKeyDictionary()
        """The truth of a comparison of two numbers that are known."""

    def line(self, value: Any) -> Line | None:
        """Return the elements of a tensor, or one number, as a Line; None if they are not known to form one."""
        if isinstance(value, int | torch.SymInt) and not isinstance(value, bool):
            return Line(value)
        if not isinstance(value, torch.Tensor):
            return None
        entry = self._known.get(value)
        if isinstance(entry, Line):
            return entry
        if not is_scalar_integer(value):
            return None
        return Line(0, 0, value) if entry is None or entry[()] is None else Line(entry[()])

    def elements(self, tensor: torch.Tensor) -> Elements | None:
        """Return the elements of a tensor; None if they are unknown."""
        entry: Line | Elements | None = self._known.get(tensor)
        if not isinstance(entry, Line):
            return entry
        if entry.base is not None or any(isinstance(size, torch.SymInt) for size in tensor.shape) or tensor.dim() > 1:
            return None
        if tensor.dim() == 0:
            return of_data(entry.start, self.elements)
        return of_data([entry.start + entry.step * index for index in range(tensor.shape[0])], self.elements)

    def number(self, value: Any) -> Any:
        """Return the value of a tensor without axes as a number or a size; None if it is unknown."""
        elements = self.elements(value) if isinstance(value, torch.Tensor) and value.dim() == 0 else None
        return None if elements is None else elements[()]

    def truth(self, value: torch.Tensor) -> bool | None:
        """Return the truth of a tensor that a comparison returned, a decision of the model; None if it is unknown."""
        truth = self._truths.get(value)
        return None if truth is None else bool(truth)

    def numbers(self, value: torch.Tensor) -> Any:
        """Return the elements of a tensor as nested lists; None if one is unknown."""
        elements = self.elements(value)
        return None if elements is None or any(element is None for element in elements.flat) else elements.tolist()

    def plain(self, name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Return the arguments of a function that takes sizes, with tensors replaced by numbers."""
        name = name.strip("_")
        prefix_length = 0 if name in _OF_SIZES else 1 if name in _OF_TENSOR_AND_SIZES else len(args)
        if prefix_length == len(args):
            return args, kwargs

        def plain(value: Any) -> Any:
            if isinstance(value, slice):
                return slice(*map(plain, (value.start, value.stop, value.step)))
            number = self.number(value)
            return value if number is None else number

        sizes, kwargs = pytree.tree_map_only((torch.Tensor, slice), plain, (args[prefix_length:], kwargs))
        return (*args[:prefix_length], *sizes), kwargs

    def arange(self, args: Any, kwargs: Any) -> torch.Tensor | None:
        """`torch.arange` of tensors whose difference is a size; None for any other call.

        Raises CaptureError if the length depends on data.
        """
        if not any(isinstance(a, torch.Tensor) for a in args):
            return None
        lines = [self.line(a) for a in args]
        start, end = (Line(0), lines[0]) if len(args) == 1 else (lines[0], lines[1])
        step = self.line(args[2]) if len(args) > 2 else Line(1)
        if start is None or end is None or step is None:
            return None
        if start.base is not end.base or step.base is not None:
            raise CaptureError(
                "the length of torch.arange depends on values in tensors",
                hint="with a length that is an integer or a size: start + step * torch.arange(length)",
            )
        made: Any = torch.arange
        positions: torch.Tensor = made(start.start, end.start, step.start, **kwargs)
        return positions if start.base is None else positions + start.base

    def follow(self, func: Callable[..., Any], name: str, args: Any, kwargs: Any, result: Any) -> None:
        """Track the elements of `result`, which the function of this name returned."""
        if name in _NOT_WRITING:
            return
        writes = name in _WRITING or (name.endswith("_") and not name.endswith("__"))
        target = args[0] if writes and args else kwargs.get("out")
        if isinstance(target, torch.Tensor):
            self._write(name, target, args)
            return
        kind = name.strip("_")
        if kind in _COMPARISONS and isinstance(result, torch.Tensor) and result.dim() == 0 and len(args) == 2:
            numbers = [self.number(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
            if all(isinstance(number, int | torch.SymInt) for number in numbers):
                self._truths[result] = _COMPARISONS[kind](*numbers)
            return
        if isinstance(result, torch.Tensor) and result.dtype in INTEGERS:
            line = self._line(kind, args, kwargs) if result.dim() <= 1 else self._rows(kind, args, result)
            if line is not None and (line.base is None or result.dim() == 0):
                self._known[result] = line
                return
        self._known.update(elements_of_results(func, kind, args, kwargs, result, self.elements))

    def _write(self, name: str, target: torch.Tensor, args: Any) -> None:
        """Drop the elements of all integer, or float, tensors, which may share memory, except where a number is set."""
        before = after = None
        if name == "__setitem__":
            _, index, value = args
            before, value = self.elements(target), of_data(value, self.elements)
            after = None if before is None or value is None else elements_after_write(target, before, index, value)
        is_float = target.dtype.is_floating_point
        for other in [tensor for tensor in self._known if tensor.dtype.is_floating_point == is_float]:
            del self._known[other]
        if after is not None:
            self._known[target] = after

    def _line(self, kind: str, args: Any, kwargs: Any) -> Line | None:
        if kind == "arange":
            lines = [self.line(a) for a in args]
            if (
                not lines
                or any(line is None or line.base is not None for line in lines)
                or {"start", "end"} & {*kwargs}
            ):
                return None
            numbers = [line.start for line in lines if line is not None]
            return Line(numbers[0] if len(numbers) > 1 else 0, numbers[2] if len(numbers) > 2 else 1)
        if kind in MAKERS or kind in _COPIES:
            return self.line(args[0]) if args else None
        if kind in ("getitem", "select") or kind in _LAST:
            return self._element(kind, args, kwargs)
        formula = _FORMULAS.get(kind)
        if formula is None or len(args) != 2 or kwargs:
            return None
        left, right = (self.line(a) for a in args)
        axes = [isinstance(a, torch.Tensor) and a.dim() > 0 for a in args]
        return None if left is None or right is None or all(axes) else formula(left, right)

    def _rows(self, kind: str, args: Any, result: torch.Tensor) -> Line | None:
        """Return the Line of each row of a tensor of several axes, whose rows are all equal."""
        if kind not in _COPIES and kind not in ("unsqueeze", "expand"):
            return None
        line, source = self.line(args[0]), args[0].shape
        is_last_kept = len(source) > 0 and str(source[-1]) == str(result.shape[-1])  # `==` might add a guard
        return line if is_last_kept else None

    def _element(self, kind: str, args: Any, kwargs: Any) -> Line | None:
        tensor, *index = args
        line = self.line(tensor) if isinstance(tensor, torch.Tensor) and tensor.dim() else None
        if line is None or kwargs or (kind == "select" and index[0] not in (0, -1)):
            return None
        if tensor.dim() > 1 and (kind not in _LAST or index):
            return None
        if kind in _LAST:
            rising = isinstance(line.step, int) and line.step > 0
            return (
                replace(line, start=line.start + line.step * (tensor.shape[-1] - 1) * _LAST[kind], step=0)
                if (rising and not index)
                else None
            )
        position = index[-1]
        if not isinstance(position, int) or isinstance(position, bool):
            return None
        position = position if position >= 0 else position + tensor.shape[0]
        return replace(line, start=line.start + line.step * position, step=0)


def _sum(a: Line, b: Line) -> Line | None:
    if a.base is not None and b.base is not None:
        return None
    return Line(a.start + b.start, a.step + b.step, b.base if a.base is None else a.base)


def _difference(a: Line, b: Line) -> Line | None:
    if b.base is not None:
        return Line(a.start - b.start, a.step - b.step) if a.base is b.base else None
    return Line(a.start - b.start, a.step - b.step, a.base)


def _product(a: Line, b: Line) -> Line | None:
    if a.base is not None or b.base is not None:
        return None
    return Line(a.start * b.start, a.step * b.start + b.step * a.start)


def _quotient(a: Line, b: Line) -> Line | None:
    plain = all(line.base is None and isinstance(line.step, int) and line.step == 0 for line in (a, b))
    return Line(a.start // b.start) if plain else None


_FORMULAS: dict[str, Callable[[Line, Line], Line | None]] = {
    **dict.fromkeys(("add", "radd"), _sum),
    "sub": _difference,
    "rsub": lambda a, b: _difference(b, a),
    **dict.fromkeys(("mul", "rmul"), _product),
    **dict.fromkeys(("floordiv", "floor_divide"), _quotient),
}
