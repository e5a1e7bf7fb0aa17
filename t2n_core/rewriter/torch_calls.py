"""Functions of torch's API that are written in C: intercepted by torch's own override protocol, under all names.

For a torch function written in Python, such as `multi_head_attention_forward`, the protocol shows the call but not the
calls in its body. So its body is run on a view of its globals in which nothing checks for overrides again, with the
mode still on: `torch.bmm` in the body is intercepted like any other.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from t2n_core.rewriter.context import CURRENT, Session
from t2n_core.rewriter.patches import copy_function, original_of
from t2n_core.rewriter.specs import Rewriter
from t2n_core.torch_graph.compat.private import (
    _VariableFunctions,
    linalg_functions,
    neural_functions,
    special_functions,
)

_OPERATORS = {
    "matmul": "__matmul__", "add": "__add__ __radd__", "mul": "__mul__ __rmul__", "sub": "__sub__",
    "div": "__truediv__ __div__", "floor_divide": "__floordiv__", "remainder": "__mod__", "pow": "__pow__",
    "neg": "__neg__", "abs": "__abs__", "bitwise_and": "__and__ __rand__", "bitwise_or": "__or__ __ror__",
    "bitwise_xor": "__xor__ __rxor__", "bitwise_not": "__invert__", "eq": "__eq__", "ne": "__ne__", "lt": "__lt__",
    "le": "__le__", "gt": "__gt__", "ge": "__ge__",
}  # fmt: skip
_REFLECTED = {"sub": "rsub __rsub__", "div": "__rtruediv__ __rdiv__"}
"""Operators with swapped operands."""
_ALIASES = (
    "abs absolute, add, arccos acos, arcsin asin, arctan atan, arctan2 atan2, cat concat concatenate, clamp clip, "
    "div divide true_divide, eq, ge greater_equal, gt greater, le less_equal, lt less, mul multiply, ne not_equal, "
    "neg negative, movedim moveaxis, sub subtract, transpose swapaxes swapdims, trunc fix, sigmoid special_expit, "
    "erf special_erf, bmm, matmul linalg_matmul, outer ger, vstack row_stack"
)
_SAME = {name: tuple(group.split()) for group in _ALIASES.split(", ") for name in group.split()}
_CHECKS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


def is_torch_function(subject: Any) -> bool:
    """Return whether a function is written in C and shown by the override protocol."""
    if isinstance(subject, types.MethodDescriptorType | types.WrapperDescriptorType):
        return issubclass(torch.Tensor, subject.__objclass__) and subject.__objclass__ is not object
    if not isinstance(subject, types.BuiltinFunctionType):
        return False
    home = getattr(subject.__self__, "__name__", "").partition(".")[0]
    return home == "torch" or getattr(_VariableFunctions, subject.__name__, None) is subject


def spellings(subject: Any) -> Iterator[tuple[Any, bool]]:
    """Yield the callables that are the same function, each with whether its two operands are swapped."""
    yield subject, False
    for name in _SAME.get(subject.__name__, (subject.__name__,)):
        for home in (torch, torch.Tensor, neural_functions, linalg_functions, special_functions):
            yield from ((spelling, False) for spelling in _overridable(home, name))
        for word in _OPERATORS.get(name, "").split():
            yield from ((spelling, False) for spelling in _overridable(torch.Tensor, word))
        for word in _REFLECTED.get(name, "").split():
            for home in (torch, torch.Tensor):
                yield from ((spelling, True) for spelling in _overridable(home, word))


def _overridable(home: Any, name: str) -> list[Any]:
    function = getattr(home, name, None)
    operator = name.startswith("__")
    return [function] if function is not None and (operator or is_torch_function(function) or name == "rsub") else []


class RewrittenCalls(TorchFunctionMode):
    """While active, the given functions are rewritten for one session; calls of other sessions are not affected."""

    def __init__(self, session: Session, rewriters: dict[Any, tuple[Rewriter, bool]]) -> None:
        super().__init__()
        self.session, self.rewriters = session, rewriters
        self._views: dict[Any, Any] = {}
        self._open: set[Any] = set()
        """Functions of torch whose body is running: one with another check for overrides calls back here."""

    def __torch_function__(self, func: Any, types_: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if CURRENT.get() is not self.session:
            return func(*args, **kwargs)
        chosen = self.rewriters.get(func)
        if chosen is not None and (chosen[0], 0) not in self.session.busy:
            rewriter, reflected = chosen
            original = _swap_operands(func) if reflected else func
            if reflected:
                args = (args[1], args[0], *args[2:])
            with self:
                return self.session.call(rewriter, original, args, kwargs)
        if isinstance(func, types.FunctionType) and func not in self._open:
            return self._run_body(func, args, kwargs)
        return func(*args, **kwargs)

    def _run_body(self, func: types.FunctionType, args: Any, kwargs: Any) -> Any:
        if func not in self._views:
            self._views[func] = _transparent(func)
        view = self._views[func]
        if view is None:
            return func(*args, **kwargs)
        self._open.add(func)
        try:
            with self:
                return view(*args, **kwargs)
        finally:
            self._open.discard(func)


def _swap_operands(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def swapped_call(first: Any, second: Any, *rest: Any, **kwargs: Any) -> Any:
        return func(second, first, *rest, **kwargs)

    return swapped_call


class _WithoutChecks(dict[str, Any]):
    """The live globals of a module, in which no argument has an override."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        super().__init__({name: _never for name in _CHECKS if name in namespace})
        self.namespace = namespace

    def __missing__(self, name: str) -> Any:
        return self.namespace[name]


def _never(*tensors: Any) -> bool:
    return False


def _transparent(function: types.FunctionType, within: frozenset[Any] = frozenset()) -> types.FunctionType | None:
    """Return a function of torch whose body runs without checks for overrides; None for one without such checks.

    Some have the functions with the checks in cells, and choose between them (`max_pool2d` with and without indices).
    """
    if (function.__module__ or "").partition(".")[0] != "torch" or function in within:
        return None
    within |= {function}
    function = original_of(function)
    asks = any(name in function.__globals__ for name in _CHECKS if name in function.__code__.co_names)
    contents = [c.cell_contents for c in function.__closure__ or ()]
    views = [_transparent(h, within) if isinstance(h, types.FunctionType) else None for h in contents]
    if not asks and not any(views):
        return None
    cells = tuple(types.CellType(view or h) for view, h in zip(views, contents, strict=True))
    return copy_function(function, _WithoutChecks(function.__globals__), cells or None)
