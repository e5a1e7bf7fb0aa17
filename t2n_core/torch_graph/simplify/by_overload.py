"""Tables of functions by the torch operator that they replace; their modules are loaded at the first look-up."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, TypeVar

from t2n_core.torch_graph.compat.operators import functional_overloads
from t2n_core.torch_graph.compat.private import OpOverload

Function = TypeVar("Function", bound=Callable[..., Any])


class ByOverload:
    """One function for each overload of torch's own operators.

    Operators of other packages are registered by name, since they exist only once that package is imported.
    """

    def __init__(self, package: str, path: Iterable[str]) -> None:
        """Create an empty registry, which the modules of the package at `path` fill."""
        self._package, self._path = package, list(path)
        self._found: dict[OpOverload, Callable[..., Any]] = {}
        self._of_libraries: dict[str, Callable[..., Any]] = {}

    def register(self, *keys: str) -> Callable[[Function], Function]:
        """Register the decorated function for an operator (`aten::median`) or one overload (`aten::median.dim`).

        Operators that this release of PyTorch lacks are left out. Raises RegistryError for a key that no release has.
        """

        def registered(function: Function) -> Function:
            for key in keys:
                if not key.startswith(("aten::", "prims::")):
                    self._of_libraries[key] = function
                    continue
                for overload in functional_overloads(key):
                    self._found[overload] = function
            return function

        return registered

    def find(self, target: OpOverload) -> Callable[..., Any] | None:
        load_modules(self._package, *self._path)
        return self._found.get(target) or self._of_libraries.get(target._schema.name)

    def overloads(self) -> Iterator[OpOverload]:
        """Return every overload of torch's own operators that has a function; for the test that each has a case."""
        load_modules(self._package, *self._path)
        return iter(self._found)


@cache
def load_modules(package: str, *path: str) -> None:
    """Import every module of a package and of the packages in it, once."""
    for module in pkgutil.walk_packages(path, f"{package}."):
        importlib.import_module(module.name)
