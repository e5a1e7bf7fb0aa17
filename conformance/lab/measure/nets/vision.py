"""Small nets like image classifiers and segmenters, at a fixed size and over free height and width."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from conformance.lab.measure.nets.layers import LayerNet

CHANNELS = 8
_IMAGE = (2, CHANNELS, 32, 48)
_FREE = {0: "B", 2: "H", 3: "W"}


class Gate(nn.Module):
    """Squeeze and excitation: each channel times a gate of the means of all channels."""

    def __init__(self, width: int, gate: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.squeeze, self.excite, self.gate = nn.Conv2d(width, 4, 1), nn.Conv2d(4, width, 1), gate

    def forward(self, x: Tensor) -> Tensor:
        means = x.mean((2, 3), keepdim=True)
        return x * self.gate(self.excite(torch.relu(self.squeeze(means))))


class Mobile(nn.Module):
    """Widened, depthwise, gated, narrowed, with a way around it: the block of MobileNet 3 and EfficientNet."""

    def __init__(self, act: type[nn.Module], gate: Callable[[Tensor], Tensor], size: int = 3, stride: int = 1) -> None:
        super().__init__()
        wide = 2 * CHANNELS
        self.body = nn.Sequential(
            *(nn.Conv2d(CHANNELS, wide, 1, bias=False), nn.BatchNorm2d(wide), act()),
            nn.Conv2d(wide, wide, size, stride, size // 2, groups=wide, bias=False),
            *(nn.BatchNorm2d(wide), act(), Gate(wide, gate)),
            *(nn.Conv2d(wide, CHANNELS, 1, bias=False), nn.BatchNorm2d(CHANNELS)),
        )
        self.around = stride == 1

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.around else torch.as_tensor(self.body(x))


class ConvNext(nn.Module):
    """Depthwise over 7 x 7, a norm over the channels, and two linear layers, with a way around them."""

    def __init__(self) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(CHANNELS, CHANNELS, 7, padding=3, groups=CHANNELS)
        self.norm = nn.LayerNorm(CHANNELS)
        self.wide, self.narrow = nn.Linear(CHANNELS, 4 * CHANNELS), nn.Linear(4 * CHANNELS, CHANNELS)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + self.narrow(nn.functional.gelu(self.wide(y))).permute(0, 3, 1, 2)


class Residual(nn.Module):
    """Two convolutions with norms, with a way around them: the block of ResNet."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False) for _ in range(2))
        self.norm, self.last_norm = nn.BatchNorm2d(CHANNELS), nn.BatchNorm2d(CHANNELS)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.last_norm(self.second(torch.relu(self.norm(self.first(x))))))


class UNet(nn.Module):
    """One step down and up again, with a way around it."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(CHANNELS, 16, 3, 2, 1), nn.ConvTranspose2d(16, CHANNELS, 2, 2)
        self.out = nn.Conv2d(2 * CHANNELS, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        deep = torch.relu(self.down(x))
        return torch.as_tensor(self.out(torch.cat([x, self.up(deep)], 1)))


def _pooled(*blocks: nn.Module) -> nn.Module:
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(CHANNELS, 3))


_NETS: dict[str, Callable[[], nn.Module]] = {
    "mobilenet3": lambda: _pooled(
        *(Mobile(nn.Hardswish, nn.functional.hardsigmoid, size) for size in (3, 5)),
        Mobile(nn.ReLU, nn.functional.hardsigmoid, stride=2),
    ),
    "mobilenet6": lambda: _pooled(Mobile(nn.ReLU6, torch.sigmoid), Mobile(nn.LeakyReLU, torch.sigmoid)),
    "efficientnet": lambda: _pooled(Mobile(nn.SiLU, torch.sigmoid), Mobile(nn.Mish, torch.sigmoid, 5)),
    "convnext": lambda: _pooled(ConvNext(), ConvNext()),
    "resnet": lambda: _pooled(Residual(), Residual()),
    "unet": UNet,
}
VISION = [
    *(LayerNet(name, make, _IMAGE) for name, make in _NETS.items()),
    *(LayerNet(f"{name}-free", make, _IMAGE, _FREE) for name, make in _NETS.items() if make is not UNet),
]
"""The U-Net takes even sizes alone, which no free axis says."""
