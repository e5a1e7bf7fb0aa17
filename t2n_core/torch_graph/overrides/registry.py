"""The registry of capture overrides: functions called instead of PyTorch's while a model is captured."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from t2n_core.torch_graph.compat.patches import Swap, replace, replaced

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
FIXES_SIZES: Final = "capture would fix the sizes that PyTorch's own code reads"
DIFFERS: Final = "capture would record other results than those of eager PyTorch, or guards would be missing"


@dataclass(frozen=True, slots=True)
class Override:
    """A function that is called instead of one function or operator."""

    replacement: Callable[..., Any]
    reason: str


@dataclass(frozen=True, slots=True)
class Patch:
    """A replacement of a private name of PyTorch, for code that no mode sees. A call returns its context."""

    path: str
    make: Callable[[Any], Any]
    """Returns the replacement of the plain object."""
    reason: str
    optional: bool = False
    """True if it only saves time: a release of PyTorch without the name is left as it is."""

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with replaced(self.path, self.make, optional=self.optional):
            yield


_FOLDERS: Final = ("overrides", "simplify.complex_pairs", "simplify.decompositions")
"""Folders whose modules register overrides."""
_OVERRIDES: dict[Any, Override] = {}
_PATCHES: list[Patch] = []


def override(*subjects: Any, reason: str) -> Callable[[FunctionT], FunctionT]:
    """Return a decorator that registers a replacement of each of these functions and operators."""

    def register(function: FunctionT) -> FunctionT:
        _OVERRIDES.update(dict.fromkeys(subjects, Override(function, reason)))
        return function

    return register


def override_each(*subjects: Any, reason: str) -> Callable[[FunctionT], FunctionT]:
    """Return a decorator like `override`, for a function whose first argument is the plain function or operator."""

    def register(function: FunctionT) -> FunctionT:
        _OVERRIDES.update({plain: Override(functools.partial(function, plain), reason) for plain in subjects})
        return function

    return register


def patch(path: str, *, reason: str, optional: bool = False) -> Callable[[Callable[[Any], Any]], Patch]:
    """Return a decorator that makes a `Patch` of a function, which is active in every capture."""

    def register(make: Callable[[Any], Any]) -> Patch:
        _PATCHES.append(Patch(path, make, reason, optional))
        return _PATCHES[-1]

    return register


@functools.cache
def overrides() -> Mapping[Any, Override]:
    """Return the overrides, by function or operator."""
    _load()
    return _OVERRIDES


def replace_patched(swap: Swap) -> None:
    """Make the replacements of all patches, until the block of `swap` ends."""
    _load()
    for patch in _PATCHES:
        replace(swap, patch.path, patch.make, optional=patch.optional)


@functools.cache
def _load() -> None:
    for folder in _FOLDERS:
        package = f"t2n_core.torch_graph.{folder}"
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            importlib.import_module(f"{package}.{module.name}")
