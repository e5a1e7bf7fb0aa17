"""What a pattern of suite `sizes` is: a net, its inputs at any sizes, and the sizes at which it is traced."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

Extent = int | str
Make = Callable[[], nn.Module]
NAMES = ("x", "y", "z")
ALL_SIZES = (*range(1, 71), 128, 257, 0)
"""Empty axes come last: the engine that dies of one has then answered the others."""
OTHERS = (1, 6)
"""What the other symbol is while one of two varies."""


@dataclass(frozen=True)
class Input:
    """A tensor whose shape holds sizes and symbols."""

    shape: tuple[Extent, ...]
    draw: Callable[[tuple[int, ...], Mapping[str, int]], Tensor]

    def at(self, sizes: Mapping[str, int]) -> Tensor:
        return self.draw(tuple(e if isinstance(e, int) else sizes[e] for e in self.shape), sizes)

    @property
    def axes(self) -> dict[int, str]:
        return {axis: extent for axis, extent in enumerate(self.shape) if isinstance(extent, str)}


def floats(*shape: Extent) -> Input:
    """Return signed values."""
    return Input(shape, lambda shape, _: torch.randn(shape))


def ints(high: int, *shape: Extent) -> Input:
    """Integers from 0 to `high - 1`."""
    return Input(shape, lambda shape, _: torch.randint(0, high, shape))


def lengths(symbol: str, *shape: Extent) -> Input:
    """Integers from 1 to the size of `symbol`; there are none where that is 0."""
    return Input(shape, lambda shape, sizes: torch.randint(1, sizes[symbol] + 1, shape))


def flags(*shape: Extent) -> Input:
    """Return booleans of both values."""
    return Input(shape, lambda shape, _: torch.rand(shape) > 0.4)


class Function(nn.Module):
    """A function of the layers, if there are any, and of the inputs."""

    def __init__(self, function: Callable[..., Any], layers: Mapping[str, nn.Module]) -> None:
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.function = function

    def forward(self, x: Tensor, y: Tensor | None = None, z: Tensor | None = None) -> Any:
        tensors = [tensor for tensor in (x, y, z) if tensor is not None]
        return self.function(self, *tensors) if self._modules else self.function(*tensors)


class Table(nn.Module):
    """A learned tensor, as `m.table.weight`."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(shape))


@dataclass(frozen=True)
class SizesNet:
    """A pattern."""

    function: Callable[..., Any]
    inputs: tuple[Input, ...]
    at: tuple[int | tuple[int, ...], ...]
    """Sizes at which it is traced: of its one symbol, or of all in the order in which they come first."""
    decides: bool
    """The model's own Python decides by a size, so that an archive may hold for one side only."""
    layers: Mapping[str, Make]
    bounds: Mapping[str, tuple[int, int | None]]
    """Smallest and largest size of the symbols that are declared with bounds."""

    @property
    def symbols(self) -> list[str]:
        return list(dict.fromkeys(symbol for spec in self.inputs for symbol in spec.axes.values()))

    @property
    def axes(self) -> dict[str, dict[int, Any]]:
        """As `dynamic_axes` takes them."""
        declared: dict[str, Any] = {symbol: symbol for symbol in self.symbols}
        declared |= {name: torch.export.Dim(name, min=low, max=high) for name, (low, high) in self.bounds.items()}
        inputs = zip(NAMES, self.inputs, strict=False)
        return {n: {axis: declared[size] for axis, size in spec.axes.items()} for n, spec in inputs if spec.axes}

    @property
    def traced(self) -> list[dict[str, int]]:
        """The sizes of each trace."""
        tuples = [sizes if isinstance(sizes, tuple) else (sizes,) for sizes in self.at]
        return [dict(zip(self.symbols, sizes, strict=True)) for sizes in tuples]

    def declares(self, sizes: Mapping[str, int]) -> bool:
        """Return whether the pattern asks for these sizes: from 1 on where it declares nothing else."""
        bounds = {symbol: self.bounds.get(symbol, (1, None)) for symbol in sizes}
        return all(low <= sizes[name] and (high is None or sizes[name] <= high) for name, (low, high) in bounds.items())

    def judged(self) -> Iterator[dict[str, int]]:
        """Yield the sizes to judge; one symbol varies while the others have each of OTHERS. Empty axes come last."""
        symbols = self.symbols
        seen: dict[tuple[int, ...], dict[str, int]] = {}
        for symbol in symbols:
            for other in OTHERS[: len(symbols)] if len(symbols) > 1 else (0,):
                for size in ALL_SIZES:
                    sizes = {**dict.fromkeys(symbols, other), symbol: size}
                    seen.setdefault(tuple(sizes.values()), sizes)
        yield from sorted(seen.values(), key=lambda sizes: 0 in sizes.values())

    def module(self, name: str) -> nn.Module:
        """Return the module of the pattern; its name is the seed of the weights."""
        with seeded(name):
            made = Function(self.function, {label: make() for label, make in self.layers.items()})
            return as_after_training(made)

    def arguments(self, name: str, sizes: Mapping[str, int]) -> tuple[Tensor, ...]:
        """Its inputs, the same ones each time."""
        with seeded(f"{name} {sorted(sizes.items())}"):
            return tuple(spec.at(sizes) for spec in self.inputs)


class seeded:  # noqa: N801  a context manager, as it reads
    """Return values drawn with a seed that depends on the text; torch's own state is restored."""

    def __init__(self, text: str) -> None:
        self._seed = zlib.crc32(text.encode())

    def __enter__(self) -> None:
        self._state = torch.get_rng_state()
        torch.default_generator.manual_seed(self._seed)

    def __exit__(self, *_: object) -> None:
        torch.set_rng_state(self._state)


def as_after_training(made: nn.Module) -> nn.Module:
    """Statistics as after training, where fresh ones would hide mistakes."""
    for name, tensor in made.named_buffers():
        if tensor.is_floating_point():
            tensor.copy_(torch.rand_like(tensor) + 0.5 if "var" in name else torch.randn_like(tensor))
    return made.eval()


def of(
    function: Callable[..., Any],
    *inputs: Input,
    at: Sequence[int | tuple[int, ...]] = (1, 5, 12),
    decides: bool = False,
    bounds: Mapping[str, tuple[int, int | None]] | None = None,
    **layers: Make,
) -> SizesNet:
    """Return a net that calls a function of its inputs, and first of a module with these layers if there are some."""
    return SizesNet(function, inputs, tuple(at), decides, layers, bounds or {})


X = floats(2, "T", 4)
"""[batch, time, features]"""
C = floats(2, 4, "T")
"""[batch, channels, time]"""
BT = floats("B", "T", 4)
S = floats(2, "S", 4)
HW = floats(1, 3, "H", "W")
