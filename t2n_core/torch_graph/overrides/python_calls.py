"""Keep sizes symbolic where a model's own code calls Python's `int`, `float` and `len`, or a function with a cache.

The first three return Python numbers, which fix a symbolic size, and a cached function hashes its arguments, which a
symbolic size does not support. During capture the functions of a model call replacements, which are added to their
globals.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType, FunctionType
from typing import Any

import torch

from t2n_core.torch_graph.reachable import CACHE, is_foreign
from t2n_core.torch_graph.trackers.size_tensors import scalar_value

_PREFIX = "__t2n_"


def _int(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and isinstance(args[0], torch.Tensor):
        size = scalar_value(args[0])
        return size if isinstance(size, int | torch.SymInt) else int(args[0])
    if len(args) == 1 and isinstance(args[0], torch.SymInt):
        return args[0]
    if len(args) == 1 and isinstance(args[0], torch.SymFloat):
        truncated: Any = torch.sym_int
        return truncated(args[0])
    return int(*args, **kwargs)


def _float(*args: Any) -> Any:
    if args and isinstance(args[0], torch.SymInt | torch.SymFloat):
        symbolic: Any = torch.sym_float
        return symbolic(args[0])
    return float(*args)


def _len(value: Any) -> Any:
    return value.shape[0] if isinstance(value, torch.Tensor) and value.dim() else len(value)


_REPLACEMENTS: dict[str, Callable[..., Any]] = {"int": _int, "float": _float, "len": _len}


@contextmanager
def python_calls_of_sizes(functions: Iterable[FunctionType]) -> Iterator[None]:
    """While active, these calls keep sizes symbolic, except in functions of PyTorch, numpy and Python itself."""
    with ExitStack() as stack:
        for function in functions:
            if is_foreign(function.__module__):
                continue
            scope, called = function.__globals__, _called_globals(function.__code__)
            names = frozenset(name for name in _REPLACEMENTS if name in called and name not in scope)
            for name in names:
                if _PREFIX + name not in scope:
                    stack.enter_context(_global(scope, _PREFIX + name, _REPLACEMENTS[name]))
            if names:
                stack.enter_context(_code(function, _rename(function.__code__, names)))
            for name in called:
                if isinstance(scope.get(name), CACHE):
                    stack.enter_context(_global(scope, name, _past_cache(scope[name])))
        yield


@contextmanager
def _global(scope: dict[str, Any], name: str, value: Any) -> Iterator[None]:
    before = scope.get(name)
    scope[name] = value
    try:
        yield
    finally:
        if before is None:
            del scope[name]
        else:
            scope[name] = before


@contextmanager
def _code(function: FunctionType, code: CodeType) -> Iterator[None]:
    before = function.__code__
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = before


def _past_cache(function: Any) -> Callable[..., Any]:
    """Return a function with an `lru_cache` such that calls with a symbolic size bypass the cache."""

    @functools.wraps(function)
    def either(*args: Any, **kwargs: Any) -> Any:
        symbolic = any(isinstance(a, torch.SymInt | torch.SymFloat) for a in (*args, *kwargs.values()))
        return (function.__wrapped__ if symbolic else function)(*args, **kwargs)

    return either


@functools.lru_cache(1 << 12)
def _called_globals(code: CodeType) -> frozenset[str]:
    """Return the globals that a function and the functions inside it call by name and use in no other way."""
    called, used = set[str](), set[str]()
    for code_object in _with_inner(code):
        for step in dis.get_instructions(code_object):
            if step.opcode in dis.hasname:  # attributes as well: code objects have one list of names for both
                is_call = step.opname == "LOAD_GLOBAL" and bool((step.arg or 0) & 1)  # pushes the NULL of a call
                (called if is_call else used).add(step.argval)
    return frozenset(called - used)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


@functools.lru_cache(1 << 10)
def _rename(code: CodeType, names: frozenset[str]) -> CodeType:
    """Return the code of a function with these globals renamed."""
    return code.replace(
        co_names=tuple(_PREFIX + name if name in names else name for name in code.co_names),
        co_consts=tuple(_rename(c, names) if isinstance(c, CodeType) else c for c in code.co_consts),
    )
