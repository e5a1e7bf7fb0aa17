"""Nets as pt2e converts them: integers of 8 bits between `quantized_decomposed` operators, float layers between those.

torchao makes such programs; these are written by hand, so that the suite needs no other package than torch.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.ao.quantization.fx import _decomposed  # noqa: F401  registers the operators

from conformance.cases.int8.case import Inputs, Int8Net

ops = torch.ops.quantized_decomposed


def on_grid(x: Tensor, scale: float, zero: int) -> Tensor:
    """Return floats that were quantised to 8 bits."""
    numbers = ops.quantize_per_tensor.default(x, scale, zero, 0, 255, torch.uint8)
    floats: Tensor = ops.dequantize_per_tensor.default(numbers, scale, zero, 0, 255, torch.uint8)
    return floats


class Weight(nn.Module):
    """A weight of int8 with a scale per output channel, or one for all."""

    def __init__(self, real: Tensor, per_channel: bool = True) -> None:
        super().__init__()
        axes = tuple(range(1, real.dim()))
        largest = real.abs().amax(axes) if per_channel else real.abs().max()
        scales = largest / 127
        each = scales.reshape(-1, *[1] * len(axes)) if per_channel else scales
        self.register_buffer("numbers", torch.clamp(torch.round(real / each), -128, 127).to(torch.int8))
        self.scale = 0.0 if per_channel else float(scales)
        if per_channel:
            self.register_buffer("scales", scales)
            self.register_buffer("zeros", torch.zeros(len(scales), dtype=torch.int64))

    def forward(self) -> Tensor:
        if self.scale:
            return ops.dequantize_per_tensor.default(self.numbers, self.scale, 0, -128, 127, torch.int8)  # type: ignore[no-any-return]
        return ops.dequantize_per_channel.default(  # type: ignore[no-any-return]
            self.numbers, self.scales, self.zeros, 0, -128, 127, torch.int8
        )


class Mlp(nn.Module):
    def __init__(self, per_channel: bool) -> None:
        super().__init__()
        self.a, self.b = Weight(torch.randn(48, 32) / 6, per_channel), Weight(torch.randn(10, 48) / 7, per_channel)
        self.bias = nn.Parameter(torch.randn(48))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(F.linear(on_grid(x, 0.03, 120), self.a(), self.bias))
        return on_grid(F.linear(on_grid(x, 0.05, 0), self.b()), 0.04, 130)


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = Weight(torch.randn(16, 3, 3, 3) / 5), Weight(torch.randn(16, 1, 3, 3) / 3)
        self.c, self.d = Weight(torch.randn(16, 16, 1, 1) / 4), Weight(torch.randn(10, 16) / 4)

    def forward(self, x: Tensor) -> Tensor:
        x = on_grid(F.relu(F.conv2d(on_grid(x, 0.03, 120), self.a(), padding=1)), 0.04, 0)
        y = on_grid(F.conv2d(x, self.b(), padding=1, groups=16), 0.05, 128)
        x = on_grid(F.conv2d(y, self.c()) + x, 0.06, 100)
        return on_grid(F.linear(x.mean([2, 3]), self.d()), 0.01, 128)


class Large(nn.Module):
    """A weight of more than 2^20 elements."""

    def __init__(self) -> None:
        super().__init__()
        self.a = Weight(torch.randn(1100, 1024) / 32)

    def forward(self, x: Tensor) -> Tensor:
        return on_grid(F.linear(on_grid(x, 0.03, 120), self.a()), 0.03, 128)


def _program(make: Any, *shape: int) -> Any:
    def build() -> tuple[Any, Inputs]:
        x = torch.randn(*shape)
        return torch.export.export(make().eval(), (x,), dynamic_shapes=({0: torch.export.Dim("B")},)), {"x": x}

    return build


def _module(make: Any, *shape: int) -> Any:
    return lambda: (make().eval(), {"x": torch.randn(*shape)})


BATCH = {"x": {0: "B"}}
CASES: dict[str, Int8Net] = {
    "pt2e-mlp": Int8Net(_module(lambda: Mlp(True), 4, 32), axes=BATCH, step=0.04),
    "pt2e-mlp-per-tensor": Int8Net(_module(lambda: Mlp(False), 4, 32), axes=BATCH, step=0.04),
    "pt2e-cnn": Int8Net(_module(Cnn, 2, 3, 12, 12), axes=BATCH, step=0.01),
    "pt2e-program": Int8Net(_program(Cnn, 2, 3, 12, 12), step=0.01),
    "pt2e-large": Int8Net(_module(Large, 2, 1024), axes=BATCH, step=0.03),
}
"""Their outputs are on a grid, and are judged in its steps."""
