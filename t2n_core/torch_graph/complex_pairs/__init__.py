"""Complex numbers inside a model, as pairs of real ones: NNEF and tract have no others.

    @on_pairs("aten::mul")
    def mul(self: Operand, other: Operand) -> Pair: ...

A function takes the arguments of the torch schema, with a `Pair` where a tensor is complex, and gives a `Pair` for each
complex result. It is traced like a decomposition is, on fake tensors, and its steps are looked up again.

Inputs and outputs of a model stay real: `torch.view_as_real` and `torch.view_as_complex` are the way in and out.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._ops import OpOverload

from t2n_core.torch_graph.decompositions import overloads

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Pair:
    """Real and imaginary part: two tensors of one shape and dtype, or two numbers."""

    re: Any
    im: Any


Operand = Pair | Tensor | complex

_FOUND: dict[OpOverload, Callable[..., Any]] = {}


def on_pairs(*keys: str) -> Callable[[Function], Function]:
    """Registers what an operator does to pairs, for all its overloads or for one (`aten::stft.center`)."""

    def register(function: Function) -> Function:
        for key in keys:
            for overload in overloads(key):
                _FOUND[overload] = function
        return function

    return register


def find(target: OpOverload) -> Callable[..., Any] | None:
    """What the operator does to pairs, if that is known."""
    _load()
    return _FOUND.get(target)


def known_overloads() -> Iterator[OpOverload]:
    """Every overload that has a form for pairs."""
    _load()
    return iter(_FOUND)


def as_pair(operand: Operand) -> Pair:
    """A real tensor or number with an imaginary part of zeros."""
    if isinstance(operand, Pair):
        return operand
    if isinstance(operand, Tensor):
        return Pair(operand, torch.zeros_like(operand))
    number = complex(operand)
    return Pair(number.real, number.imag)


@cache
def _load() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
