"""Interception of Python functions through their code objects, which affects every reference to them.

A function's `__code__` is exchanged for a trampoline that looks up which export runs in this thread: earlier imports,
tuples, partials, default arguments, closures and descriptors all refer to the same function object, and nothing has to
be searched. A callable without Python code (C functions, scripted functions, caches) is replaced by name in the modules
that contain it. Patches are counted: exports that nest or run in threads share one, and the last one removes it.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

Dispatch = Callable[[Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""(subject, caller of the original, args, kwargs) -> result. All threads share it, so it looks up its export."""

_LOCK = threading.Lock()
_MARK = "the dispatcher goes here"


@dataclass(slots=True, eq=False)
class _Patch:
    """One intercepted function, and how many exports intercept it now."""

    subject: Any
    original: Callable[..., Any]
    undo: Callable[[], None]
    users: int = 1


_patches: dict[int, _Patch] = {}


@contextmanager
def intercept(subjects: Iterable[Any], dispatch: Dispatch) -> Iterator[None]:
    """While active, calls of the subjects go through `dispatch`."""
    with ExitStack() as stack:
        for subject in subjects:
            _install(subject, dispatch)
            stack.callback(_remove, subject)
        yield


def original_of(function: Any) -> Any:
    """Return the original of a function that is currently patched; otherwise the function itself."""
    patch = _patches.get(id(function))
    return function if patch is None else patch.original


def _install(subject: Any, dispatch: Dispatch) -> None:
    with _LOCK:
        patch = _patches.get(id(subject))
        if patch is not None:
            patch.users += 1
            return
        install = _exchange_code if isinstance(subject, types.FunctionType) else _replace_names
        _patches[id(subject)] = install(subject, dispatch)


def _remove(subject: Any) -> None:
    with _LOCK:
        patch = _patches[id(subject)]
        patch.users -= 1
        if not patch.users:
            del _patches[id(subject)]
            patch.undo()


def _exchange_code(function: types.FunctionType, dispatch: Dispatch) -> _Patch:
    code, signature = function.__code__, inspect.signature(function)
    original = copy_function(function, function.__globals__)

    def enter(*args: Any, **kwargs: Any) -> Any:
        return dispatch(function, original, args, kwargs)

    signed = "__signature__" in vars(function) or "__wrapped__" in vars(function)
    if not signed:
        function.__signature__ = signature  # type: ignore[attr-defined]
    function.__code__ = _trampoline(code, enter)

    def undo() -> None:
        function.__code__ = code
        if not signed:
            del function.__signature__  # type: ignore[attr-defined]

    return _Patch(function, original, undo)


def copy_function(
    function: types.FunctionType, namespace: dict[str, Any], closure: tuple[Any, ...] | None = None
) -> types.FunctionType:
    """Return a copy of a function with other globals, and other cells if passed."""
    cells = function.__closure__ if closure is None else closure
    copied = types.FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, cells)
    copied.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(copied, function, updated=())
    return copied


def _trampoline(code: types.CodeType, enter: Callable[..., Any]) -> types.CodeType:
    """Return code that only calls `enter`, with a free variable per cell of the function, as Python requires."""
    free = "".join(f"{name}, " for name in code.co_freevars)
    text = f"def outer({free}):\n  def inner(*args, **kwargs):\n    return {_MARK!r}(*args, **kwargs)\n    ({free})\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns that a string is not callable, but it is replaced
        outer = compile(text, code.co_filename, "exec")
    for _ in range(2):
        outer = next(c for c in outer.co_consts if isinstance(c, types.CodeType))
    constants = tuple(enter if c == _MARK else c for c in outer.co_consts)
    return outer.replace(
        co_consts=constants,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,  # reports of a call show the place of the function
    )


def _replace_names(subject: Any, dispatch: Dispatch) -> _Patch:
    @functools.wraps(subject, updated=())
    def replacement(*args: Any, **kwargs: Any) -> Any:
        return dispatch(subject, subject, args, kwargs)

    places: list[tuple[dict[str, Any], str]] = []
    for module in list(sys.modules.values()):
        namespace = getattr(module, "__dict__", None)
        if isinstance(namespace, dict):
            places += [(namespace, name) for name, value in list(namespace.items()) if value is subject]
    for namespace, name in places:
        namespace[name] = replacement

    def undo() -> None:
        for namespace, name in places:
            if namespace.get(name) is replacement:  # otherwise it has been set by others since
                namespace[name] = subject

    return _Patch(subject, subject, undo)
