"""Find what the Python code of a model can change while it runs: its objects, containers, closures, globals and caches.

The search follows modules, helper objects, functions with their closures and the globals that they name, and the
classes of all of these, nearest first; not the code of PyTorch, numpy and the standard library.
"""

from __future__ import annotations

import functools
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import torch

_FOREIGN = frozenset(
    {*sys.stdlib_module_names, "torch", "numpy", "sympy", "t2n_core", "pytest_t2n", "_pytest", "pytest"}
)
_ATOMS = (int, float, complex, str, bytes, type(None), torch.Tensor, torch.Size, torch.dtype, BuiltinFunctionType)
_OF_A_MODULE = frozenset(name for name in vars(torch.nn.Module()) if "_hooks" not in name)
"""Attributes of torch.nn.Module itself except hooks; torch.export restores their contents."""
_CONTAINERS = (OrderedDict, dict, list, set, deque, tuple, frozenset)
CACHE = type(functools.lru_cache(lambda: None))
_MOST = 1000
"""Most objects reached through code that are visited: much of a large library can be reached, which takes time."""


@dataclass(slots=True)
class Reachable:
    """The result of a search; each list holds an object once."""

    contents: list[Any] = field(default_factory=list)
    """Lists, dicts, sets and deques; the attributes of an object are the dict `vars(it)`."""
    cells: list[CellType] = field(default_factory=list)
    """Variables of closures."""
    names: list[tuple[Any, str]] = field(default_factory=list)
    """Names and their owners: a dict of globals, a class, or an object with slots."""
    caches: list[Any] = field(default_factory=list)
    """Functions with an lru_cache."""
    _seen: dict[int, Any] = field(default_factory=dict)
    _ahead: list[Any] = field(default_factory=list)
    _code: deque[Any] = field(default_factory=deque)

    def follow(self, *roots: Any) -> None:
        """Add what is reachable from the roots through objects and containers; their code waits for `follow_code`."""
        self._ahead += roots
        while self._ahead:
            value = self._ahead.pop()
            if isinstance(value, _ATOMS) or id(value) in self._seen:
                continue
            self._seen[id(value)] = value
            self._visit(value)

    def follow_code(self) -> None:
        """Add what the visited functions and classes can reach in turn, up to a number of objects."""
        most = len(self._seen) + _MOST
        while self._code and len(self._seen) < most:
            self.follow(*_reached_by_code(self._code.popleft(), self))

    def functions(self) -> list[FunctionType]:
        """Return the visited functions, in order."""
        return [value for value in self._seen.values() if isinstance(value, FunctionType)]

    def modules(self) -> list[torch.nn.Module]:
        """Return the visited modules."""
        return [value for value in self._seen.values() if isinstance(value, torch.nn.Module)]

    def _visit(self, value: Any) -> None:
        if isinstance(value, torch.nn.Module):
            attributes = vars(value)
            self.contents.append(attributes)
            self._ahead += [v for name, v in attributes.items() if name not in _OF_A_MODULE]
            self._ahead += value._modules.values()
            self._code.append(type(value))
        elif isinstance(value, dict):
            self.contents.append(value)
            self._ahead += [item for _, item in contents_of(value)]
        elif isinstance(value, list | set | deque):
            self.contents.append(value)
            self._ahead += contents_of(value)
        elif isinstance(value, tuple | frozenset):
            self._ahead += contents_of(value)
        elif isinstance(value, FunctionType | type | CACHE):
            self._code.append(value)
        elif isinstance(value, MethodType):
            self._ahead += [value.__self__, value.__func__]
        elif isinstance(value, functools.partial):
            self._ahead += [value.func, value.args, value.keywords]
        elif isinstance(value, property | staticmethod | classmethod | functools.cached_property):
            self._ahead += [getattr(value, name, None) for name in ("__func__", "fget", "fset", "func")]
        elif isinstance(value, SimpleNamespace) or not is_foreign(type(value).__module__):
            self._object(value)

    def _object(self, value: Any) -> None:
        self._code.append(type(value))
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            self.contents.append(attributes)
            self._ahead += attributes.values()
        for cls in type(value).__mro__:
            slots = vars(cls).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__") and not is_foreign(cls.__module__):
                    self.names.append((value, name))
                    self._ahead.append(getattr(value, name, None))


def contents_of(container: Any) -> list[Any]:
    """Return what a container holds, the pairs of a dict, without calling methods that its own class overrides.

    Such a method may load what it returns when it is asked, as the mappings of transformers do.
    """
    kind: Any = type(container)
    if kind not in _CONTAINERS:
        kind = next(base for base in kind.__mro__ if base in _CONTAINERS)
    return list(kind.items(container) if issubclass(kind, dict) else kind.__iter__(container))


def _reached_by_code(code: Any, reachable: Reachable) -> Iterator[Any]:
    """Yield the objects that a function or class reaches directly, and add its names, closure or cache."""
    if isinstance(code, CACHE):
        reachable.caches.append(code)
        yield code.__wrapped__
    elif is_foreign(getattr(code, "__module__", None)):
        return
    elif isinstance(code, type):
        yield from code.__bases__
        for name, value in sorted(vars(code).items(), key=lambda item: item[0] not in ("forward", "__call__")):
            if not name.startswith("__") or name in ("__call__", "__init__", "__getitem__"):
                if not isinstance(value, FunctionType):
                    reachable.names.append((code, name))
                yield value
    else:
        for cell in code.__closure__ or ():
            reachable.cells.append(cell)
            yield _inside(cell)
        yield from (code.__defaults__, code.__kwdefaults__, vars(code))
        yield from _globals(code, reachable)


def _globals(function: FunctionType, reachable: Reachable) -> Iterator[Any]:
    names = _names(function.__code__)
    places = [function.__globals__]
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType) and not is_foreign(value.__name__):
            places.append(vars(value))
    for namespace in places:
        for name in names:
            if name in namespace and not isinstance(namespace[name], ModuleType):
                if not isinstance(namespace[name], FunctionType | type | CACHE):
                    reachable.names.append((namespace, name))
                yield namespace[name]


@functools.lru_cache(1 << 14)
def _names(code: CodeType) -> tuple[str, ...]:
    """Return the names that a function reads and writes, also in the functions inside it."""
    inner = [name for const in code.co_consts if isinstance(const, CodeType) for name in _names(const)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


@functools.lru_cache(1 << 12)
def is_foreign(module: str | None) -> bool:
    """Return whether a module is part of PyTorch, numpy, the standard library or this package."""
    return module is None or module.partition(".")[0] in _FOREIGN


def _inside(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None
