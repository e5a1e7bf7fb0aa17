"""A program: a module, its inputs, and what is asked of its archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Program:
    """`make` is called after a seed is set, and so is `inputs`."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Any, ...]]
    axes: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Dynamic axes of the inputs."""
    in_standard: bool = True
    """Whether the operators of the standard can say it; an archive for Khronos has fixed sizes."""
    target: Mapping[str, Any] = field(default_factory=dict)
    """Options of the target tract."""


class Function(nn.Module):
    """A module that calls a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *inputs: Any) -> Any:
        return self._function(*inputs)


def numbers(*shape: int) -> Callable[[], tuple[Tensor, ...]]:
    """Return a source of one input, normally distributed."""
    return lambda: (torch.randn(shape),)


def positive(*shape: int) -> Callable[[], tuple[Tensor, ...]]:
    """Return a source of one input between 0.5 and 3."""
    return lambda: (torch.rand(shape) * 2.5 + 0.5,)


def fractions(*shape: int) -> Callable[[], tuple[Tensor, ...]]:
    """Return a source of one input between -0.9 and 0.9."""
    return lambda: (torch.rand(shape) * 1.8 - 0.9,)


def wholes(*shape: int) -> Callable[[], tuple[Tensor, ...]]:
    """Return a source of one input of different integers, in no order, of both signs."""
    count = torch.Size(shape).numel()
    return lambda: ((torch.randperm(count) - count // 2).reshape(shape),)


def program(function: Callable[..., Any], inputs: Callable[[], tuple[Any, ...]], **options: Any) -> Program:
    """Return the program of a function."""
    return Program(lambda: Function(function), inputs, **options)
