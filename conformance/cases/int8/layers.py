"""Layers of torch.ao with static grids, one quantised layer each."""

from __future__ import annotations

from typing import Any

import torch
import torch.ao.nn.intrinsic as fused
import torch.ao.quantization as ao
import torch.nn.functional as F
from torch import Tensor, nn
from torch.ao.nn.quantized import FloatFunctional

from conformance.cases.int8.case import Int8Net, of_layer


class Two(nn.Module):
    """An operator between two linear layers."""

    def __init__(self, operator: str) -> None:
        super().__init__()
        self.operator, self.function = operator, FloatFunctional()
        self.a, self.b = nn.Linear(32, 16), nn.Linear(32, 16)

    def forward(self, x: Tensor) -> Any:
        a, b = self.a(x), self.b(x)
        if self.operator == "cat":
            return self.function.cat([a, b], 1)
        if self.operator == "matmul":
            return self.function.matmul(a.unflatten(1, (4, 4)), b.unflatten(1, (4, 4)))
        if self.operator in ("add_scalar", "mul_scalar"):
            return getattr(self.function, self.operator)(a, -0.7)
        return getattr(self.function, self.operator)(a, b)


class Moves(nn.Module):
    """Functions that move elements, between two convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(4, 6, 1)

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.a(x).chunk(2, 1)
        x = F.max_pool2d(F.pad(first, (1, 0, 0, 1)), 2).transpose(2, 3)
        x = self.b(torch.cat([x, second[:, :, ::2, ::2]], 3))
        return F.interpolate(x, scale_factor=2.0, mode="nearest").flatten(1)


def after_conv(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), *layers)


def _of_tensor(module: nn.Module) -> nn.Module:
    """Return a layer with one scale for its whole weight; transposed convolutions want that."""
    activation = ao.HistogramObserver.with_args(reduce_range=True)
    module.qconfig = ao.QConfig(activation=activation, weight=ao.default_weight_observer)  # type: ignore[assignment]
    return module


IMAGE, SMALL = (2, 3, 12, 12), (2, 8, 15, 15)
CASES: dict[str, Int8Net] = {
    "linear": of_layer(lambda: nn.Linear(64, 32), (8, 64)),
    "linear-nobias": of_layer(lambda: nn.Linear(48, 20, bias=False), (5, 48)),
    "linear-long": of_layer(lambda: nn.Linear(2048, 512), (3, 2048)),
    "linear-rows": of_layer(lambda: nn.Linear(32, 24), (2, 5, 32)),
    "linear-relu": of_layer(lambda: fused.LinearReLU(nn.Linear(64, 32), nn.ReLU()), (8, 64)),
    **{f"linear-{e}": of_layer(lambda: nn.Linear(64, 32), (8, 64), engine=e) for e in ("fbgemm", "onednn", "qnnpack")},
    "conv1d": of_layer(lambda: nn.Conv1d(4, 8, 3, padding=1), (2, 4, 20)),
    "conv2d": of_layer(lambda: nn.Conv2d(3, 8, 3, padding=1), IMAGE),
    "conv2d-stem": of_layer(lambda: nn.Conv2d(3, 64, 7, 2, 3), (2, 3, 40, 40)),
    "conv2d-settings": of_layer(lambda: nn.Conv2d(8, 16, 3, 2, 2, 2, 4), SMALL),
    "conv2d-reflect": of_layer(lambda: nn.Conv2d(4, 8, 3, padding=1, padding_mode="reflect"), (2, 4, 9, 9)),
    "conv2d-depthwise": of_layer(lambda: nn.Conv2d(8, 8, 3, padding=1, groups=8), SMALL),
    "conv2d-relu": of_layer(lambda: fused.ConvReLU2d(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()), IMAGE),
    **{
        f"conv2d-{e}": of_layer(lambda: nn.Conv2d(3, 8, 3, padding=1), IMAGE, engine=e)
        for e in ("fbgemm", "onednn", "qnnpack")
    },
    "conv3d": of_layer(lambda: nn.Conv3d(2, 4, (2, 3, 1), padding=(1, 0, 0)), (2, 2, 5, 6, 4)),
    "conv_transpose2d": of_layer(lambda: _of_tensor(nn.ConvTranspose2d(4, 6, 3, 2, 1)), (2, 4, 7, 7), engine="qnnpack"),
    **{word: of_layer(lambda word=word: Two(word), (8, 32)) for word in ("add", "mul", "cat", "add_relu")},
    **{word: of_layer(lambda word=word: Two(word), (8, 32)) for word in ("add_scalar", "mul_scalar", "matmul")},
    "moves": of_layer(Moves, (2, 4, 8, 8)),
    "pools": of_layer(lambda: after_conv(nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1)), IMAGE),
    "bilinear": of_layer(lambda: after_conv(nn.Upsample(scale_factor=2, mode="bilinear")), IMAGE),
    "activations": of_layer(
        lambda: after_conv(nn.Hardswish(), nn.LeakyReLU(0.1), nn.ReLU6(), nn.ELU(), nn.Sigmoid(), nn.Tanh()), IMAGE
    ),
    "batch_norm": of_layer(lambda: after_conv(nn.BatchNorm2d(6)), IMAGE),
    "norms": of_layer(
        lambda: after_conv(nn.GroupNorm(2, 6), nn.InstanceNorm2d(6, affine=True), nn.LayerNorm((12, 12))), IMAGE
    ),
}  # fmt: skip
"""Each in steps of its output's grid."""
