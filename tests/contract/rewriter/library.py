"""A library that nobody can export: its functions look at the data. Tests rewrite them in every way they are held."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

FACTOR = 2.0


def opaque(x: torch.Tensor) -> torch.Tensor:
    """FACTOR * x, by a way that no tracer can follow."""
    return x * (FACTOR if float(x.detach().numpy().sum()) < math.inf else 0.0)


KEPT = opaque
IN_A_TUPLE = (opaque, "other")
IN_A_LIST = [opaque]
IN_A_DICT = {"f": opaque}
PARTIAL = functools.partial(opaque)


def by_default(x: torch.Tensor, f: Callable[..., torch.Tensor] = opaque) -> torch.Tensor:
    return f(x)


def _closed(f: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return f(x)

    return inner


CLOSED = _closed(opaque)


class Slotted:
    __slots__ = ("f",)

    def __init__(self) -> None:
        self.f = opaque


class Plain:
    def __init__(self) -> None:
        self.f = opaque


SLOTTED, PLAIN = Slotted(), Plain()


class Kit:
    """Every kind of method, each 2 * x where a tracer cannot see it."""

    scale = 2.0

    def plain(self, x: torch.Tensor) -> torch.Tensor:
        return opaque(x)

    @staticmethod
    def static(x: torch.Tensor) -> torch.Tensor:
        return opaque(x)

    @classmethod
    def of_class(cls, x: torch.Tensor) -> torch.Tensor:
        return opaque(x) * (cls.scale / 2)

    @property
    def factor(self) -> float:
        return self.scale


class SubKit(Kit):
    scale = 6.0


@functools.cache
def cached(size: int) -> float:
    return size / 2


def recursive(x: torch.Tensor, depth: int) -> torch.Tensor:
    return x if depth == 0 else recursive(x + 1, depth - 1)


@torch.jit.script_if_tracing
def scripted_if_tracing(x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() > 1e30):
        return x
    return x * 2.0


def caller_of_scripted(x: torch.Tensor) -> Any:
    return scripted_if_tracing(x)


def to_be_scripted(x: torch.Tensor) -> torch.Tensor:
    return x * 2.0
