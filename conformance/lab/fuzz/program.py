"""A random model as data: inputs, steps and outputs, and the Python class that they are."""

from __future__ import annotations

import ast
import linecache
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Sizes = Mapping[str, int]
"""Symbol -> size."""
NORMAL, LENGTHS, INDICES, MASK = "normal", "lengths", "indices", "mask"
"""Kinds of inputs: normally distributed; 1 to a size; 0 to below a size; true and false."""
EXPORT, TRACE, SCRIPT = "export", "trace", "script"
"""The ways in which a model is captured."""
_NOISE = 1e-6
NAMESPACE: dict[str, Any] = {"torch": torch, "F": F, "nn": nn, "math": math, "Tensor": Tensor}


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor that the model takes."""

    name: str
    dims: tuple[int | str, ...]
    kind: str = NORMAL
    of: str = ""
    """The symbol that lengths and indices are bounded by."""
    zeros: bool = False
    """Whether all elements of the example are zeros; at other sizes they are drawn."""

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple(sizes[d] if isinstance(d, str) else d for d in self.dims)

    def draw(self, sizes: Sizes, generator: torch.Generator) -> Tensor:
        """Return random elements that are valid at these sizes."""
        shape = self.shape(sizes)
        if self.kind == NORMAL:
            return torch.randn(shape, generator=generator)
        if self.kind == MASK:
            return torch.rand(shape, generator=generator) < 0.7
        size = sizes.get(self.of, 1)
        first = 1 if self.kind == LENGTHS else 0
        return torch.randint(first, size + first, shape, generator=generator)


@dataclass(frozen=True, slots=True)
class Step:
    """One line of `forward`: `name = text`. A layer that it calls is `self.LAYER` in the text."""

    name: str
    text: str
    layer: str = ""
    """The expression that makes the layer: `nn.Linear(4, 6)`."""

    @property
    def layer_name(self) -> str:
        return f"layer_{self.name}"

    @property
    def is_size(self) -> bool:
        return self.name.startswith("n")

    @property
    def is_condition(self) -> bool:
        return self.name.startswith("c")

    @property
    def is_tensor(self) -> bool:
        return not self.is_size and not self.is_condition

    @property
    def reads(self) -> frozenset[str]:
        return names_in(self.text)


@dataclass(frozen=True)
class Program:
    """A whole model with the sizes of its example."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    example: Mapping[str, int]
    seed: int
    way: str = EXPORT
    lengths: tuple[int, ...] = ()
    """Judged lengths of symbols other than the batch, instead of the usual sizes."""

    @property
    def symbols(self) -> list[str]:
        return list(dict.fromkeys(d for spec in self.inputs for d in spec.dims if isinstance(d, str)))

    @property
    def operators(self) -> int:
        """How many steps compute tensors."""
        return sum(step.is_tensor for step in self.steps)

    @property
    def axes(self) -> dict[str, dict[int, str]]:
        """The dynamic axes, as `ModelExport` takes them."""
        axes_by_input = {i.name: {a: d for a, d in enumerate(i.dims) if isinstance(d, str)} for i in self.inputs}
        return {name: axes for name, axes in axes_by_input.items() if axes}

    @cached_property
    def source(self) -> str:
        """The class `Model`."""
        lines = ["class Model(nn.Module):"]
        layers = [step for step in self.steps if step.layer]
        if layers:
            lines += ["    def __init__(self):", "        super().__init__()"]
            lines += [f"        self.{step.layer_name} = {step.layer}" for step in layers]
            lines += [""]
        lines += [self._head]
        for step in self.steps:
            text = step.text.replace("self.LAYER", f"self.{step.layer_name}")
            lines.append(f"        {step.name} = {text}")
        lines += [f"        return {', '.join(self.outputs)}"]
        return "\n".join(lines) + "\n"

    def model(self) -> nn.Module:
        """Return the module in evaluation mode; equal programs have equal weights."""
        filename = f"fuzz_{zlib.crc32(self.source.encode()):x}.py"
        linecache.cache[filename] = (len(self.source), None, self.source.splitlines(keepends=True), filename)
        namespace = {**NAMESPACE, "add_noise": add_noise}
        exec(compile(self.source, filename, "exec"), namespace)
        torch.manual_seed(self.seed)
        made: nn.Module = namespace["Model"]()
        return with_weights(made.eval())

    def arguments(self, sizes: Sizes) -> dict[str, Tensor]:
        """Random inputs at these sizes, the same ones each time."""
        drawn = torch.Generator().manual_seed(self.seed * 7919 + sum(n * 31**i for i, n in enumerate(sizes.values())))
        return {spec.name: spec.draw(sizes, drawn) for spec in self.inputs}

    def example_arguments(self) -> dict[str, Tensor]:
        """Return the inputs that the model is exported with."""
        arguments = self.arguments(self.example)
        return arguments | {spec.name: torch.zeros_like(arguments[spec.name]) for spec in self.inputs if spec.zeros}

    def trimmed(self) -> Program:
        """Without the steps, and the inputs, that no output needs. At least one input stays."""
        needed, needed_steps = set(self.outputs), []
        for step in reversed(self.steps):
            if step.name in needed:
                needed |= step.reads
                needed_steps.append(step)
        inputs = tuple(spec for spec in self.inputs if spec.name in needed) or self.inputs[:1]
        symbols = {d for spec in inputs for d in spec.dims}
        example = {name: size for name, size in self.example.items() if name in symbols}
        return replace(self, inputs=inputs, steps=tuple(reversed(needed_steps)), example=example)

    def step_at(self, line: int) -> Step | None:
        """Return the step that stands in this line of the source, counted from 1."""
        first = self.source.splitlines().index(self._head) + 2
        return self.steps[line - first] if 0 <= line - first < len(self.steps) else None

    @property
    def _head(self) -> str:
        return f"    def forward(self, {', '.join(spec.name for spec in self.inputs)}):"

    def with_noise(self) -> Program:
        """Return the program with noise in every tensor, to learn how much of it comes out at the end."""
        noisy = (replace(s, text=f"add_noise({s.text})") if s.is_tensor else s for s in self.steps)
        return replace(self, steps=tuple(noisy))

    def with_all_values(self) -> Program:
        """Return the program with every tensor as an output."""
        return replace(self, outputs=tuple(step.name for step in self.steps if step.is_tensor))


def add_noise(value: Any) -> Any:
    """Return values with the error that a chain of roundings in float32 may add."""
    if isinstance(value, Tensor) and value.is_floating_point():
        return value * (1 + _NOISE * torch.randn_like(value))
    return value


def with_weights(module: nn.Module) -> nn.Module:
    """Return the module with signed weights, also where a new layer has zeros and ones, which hide mistakes."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)
    return module


@lru_cache(maxsize=4096)
def names_in(text: str) -> frozenset[str]:
    """Return the variables that an expression reads."""
    names = [node for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return frozenset(node.id for node in names) - bound - NAMESPACE.keys() - {"self", "add_noise"}


def numbers_in(steps: Sequence[Step]) -> list[int]:
    """Return the integers that the steps are written with, ascending: where a slice or a decision may turn."""
    integers: set[int] = set()
    for step in steps:
        for node in ast.walk(ast.parse(step.text, mode="eval")):
            if isinstance(node, ast.Constant) and type(node.value) is int:
                integers.add(abs(node.value))
    return sorted(integers)
