"""What a case of the suite `int8` is, and how PyTorch quantises a net."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.ao.quantization as ao
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

Inputs = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Int8Net:
    """One quantised net. `build` runs under a fixed seed and with its engine, so that every session sees the same."""

    build: Callable[[], tuple[Any, Inputs]]
    engine: str = "x86"
    """The backend of PyTorch that packs the weights and computes the reference."""
    axes: dict[str, dict[int, str]] | None = None
    level: str = ""
    """The level to hold, for nets with real outputs; others are judged in steps of the output's grid."""
    step: float = 0.0
    """One step of the output's grid, where PyTorch's tensors do not say it."""
    spread: bool = False
    """True for a deep net, in which one tie in the first layers moves many elements of the last: it may differ by as
    much as PyTorch's own engines do."""


@contextmanager
def packing(engine: str) -> Iterator[None]:
    """While active, PyTorch packs weights for this engine."""
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = engine
    try:
        yield
    finally:
        torch.backends.quantized.engine = before


class Steps(TorchFunctionMode):
    """Notes the scale of the last tensor that is dequantised: one step of the output."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 0.0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "dequantize":
            self.scale = float(args[0].q_scale())
        return func(*args, **(kwargs or {}))


def step_of(model: Callable[..., Any], inputs: Inputs) -> float:
    """Return the step of the grid that the model's output comes from."""
    with Steps() as steps, torch.no_grad():
        model(*inputs.values())
    return steps.scale


class Between(nn.Module):
    """A net between floats: quantised at its start, dequantised at its end."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.quant, self.net, self.dequant = ao.QuantStub(), net, ao.DeQuantStub()

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.dequant(self.net(self.quant(x)))
        return output


def quantise_net(net: nn.Module, shape: tuple[int, ...], qconfig: Any = None) -> nn.Module:
    """Return a net quantised for the engine in force, with grids found on random inputs.

    They spread further than a check's inputs. A grid has 7 bits, but PyTorch clamps inputs beyond it to 8; without VNNI
    its kernels add two such products in 16 bits, which saturate.
    """
    model = Between(net).eval()
    model.qconfig = qconfig or ao.get_default_qconfig(torch.backends.quantized.engine)  # type: ignore[assignment]
    prepared: nn.Module = ao.prepare(model)
    with torch.no_grad():
        for _ in range(8):
            prepared(torch.randn(*shape) * 3.0)
    quantised: nn.Module = ao.convert(prepared)
    return quantised


def of_layer(make: Callable[[], nn.Module], shape: tuple[int, ...], **settings: Any) -> Int8Net:
    """Return the case of one quantised layer, with a dynamic batch."""

    def build() -> tuple[nn.Module, Inputs]:
        return quantise_net(make(), shape), {"x": torch.randn(*shape) * 1.3}

    return Int8Net(build, axes={"x": {0: "B"}}, **settings)


ENGINES = ("x86", "fbgemm", "onednn")
"""Engines of PyTorch that can compute one and the same converted net; qnnpack takes no scale per channel."""
_INPUTS = 24


def rms(expected: Sequence[Any], actual: Sequence[Any]) -> float:
    """Return the root mean square of the differences of the first outputs, in units of the expected ones' deviation."""
    difference = np.asarray(actual[0], np.float64) - np.asarray(expected[0], np.float64)
    return float(np.sqrt(np.mean(difference**2)) / np.std(expected[0]))


@torch.no_grad()
def spread_of(build: Callable[[], tuple[Any, Inputs]], seed: int) -> float:
    """Return the largest `rms` between two engines of PyTorch, of one net and the same random inputs."""
    outputs: list[list[Any]] = []
    for engine in ENGINES:
        torch.manual_seed(seed)
        with packing(engine):
            model, inputs = build()
            random = torch.Generator().manual_seed(1)
            shapes = [x.shape for x in inputs.values()]
            outputs.append([model(*(torch.randn(s, generator=random) for s in shapes)).numpy() for _ in range(_INPUTS)])
    return max(rms([a], [b]) for first in outputs for other in outputs for a, b in zip(first, other, strict=True))
