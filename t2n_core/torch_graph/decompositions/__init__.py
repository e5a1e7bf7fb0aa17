"""Decompositions of our own, for operators that PyTorch's table does not take apart.

    @decomposition("aten::mvlgamma")
    def mvlgamma(self: Tensor, p: int) -> Tensor: ...

The function takes the arguments of the torch schema and is traced like PyTorch's decompositions are, on fake tensors;
its steps are looked up again. What it cannot take apart it refuses with `Refusal`, which becomes the reason a user
reads. Loops over sizes are unrolled, so those sizes must be static: `static_size` asks for that.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import torch
from torch._ops import OpOverload

Function = TypeVar("Function", bound=Callable[..., Any])
UNROLLED = 64
"""Longest loop that is unrolled; a matrix beyond it would make thousands of statements."""

_FOUND: dict[OpOverload, Callable[..., Any]] = {}
_OF_LIBRARIES: dict[str, Callable[..., Any]] = {}
"""By name, since the operators of other packages exist only once those are imported."""


class Refusal(Exception):  # noqa: N818  it is no error of the program
    """Why this call has no decomposition."""


def decomposition(*keys: str) -> Callable[[Function], Function]:
    """Registers a decomposition for all overloads of an operator, or for one (`aten::median.dim`).

    An operator of another package is known by its name only.
    """

    def register(function: Function) -> Function:
        for key in keys:
            if not key.startswith(("aten::", "prims::")):
                _OF_LIBRARIES[key] = function
                continue
            for overload in overloads(key):
                _FOUND[overload] = function
        return function

    return register


def find(target: OpOverload) -> Callable[..., Any] | None:
    """Our decomposition of an operator, if there is one."""
    _load()
    return _FOUND.get(target) or _OF_LIBRARIES.get(target._schema.name)


def all_decompositions() -> Iterator[OpOverload]:
    """Every overload that has one; for the test that each has a case."""
    _load()
    return iter(_FOUND)


def static_size(size: Any, what: str) -> int:
    """A size as a number. Raises Refusal if it varies or is too long to unroll."""
    if not isinstance(size, int):
        raise Refusal(f"{what} needs a fixed size of its matrices")
    if size > UNROLLED:
        raise Refusal(f"{what} is unrolled, and a size of {size} is beyond {UNROLLED}")
    return size


def overloads(key: str) -> list[OpOverload]:
    """Of an operator that gives its result (`aten::median`), or the one that is named (`aten::median.dim`)."""
    namespace, _, rest = key.partition("::")
    name, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), name)
    names = [overload] if overload else [n for n in packet.overloads() if n != "out" and not n.endswith("_out")]
    return [getattr(packet, n) for n in names]


@cache
def _load() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
