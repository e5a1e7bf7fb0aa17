"""Nets without recurrence whose speed in the engine is measured. Imports nothing but torch, as `exported.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

from conformance.lab.measure.nets.exported import Inverted

WIDTH, HEADS, FRAMES = 256, 4, 100


@dataclass(frozen=True, slots=True)
class LayerNet:
    """One net and its input; `dynamic` says which axes of the input it is exported for any size of."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    dynamic: Mapping[int, str] = field(default_factory=dict)

    @property
    def outputs(self) -> list[str]:
        return ["y"]

    def dynamic_axes(self, name: str) -> dict[str, dict[int, str]]:
        """Return the dynamic axes of the input under that name."""
        return {name: dict(self.dynamic)} if self.dynamic else {}

    def build(self) -> tuple[nn.Module, torch.Tensor]:
        """Return the net and its input, the same each time; norms have weights, where a new layer's do nothing."""
        torch.manual_seed(0)
        model = self.make().eval()
        for name, tensor in model.named_parameters():
            if "norm" in name or tensor.ndim == 1:
                nn.init.normal_(tensor, float(name.endswith("weight")), 0.2)
        for name, tensor in model.named_buffers():
            if tensor.is_floating_point():
                nn.init.uniform_(tensor, *((0.5, 1.5) if name.endswith("var") else (-0.5, 0.5)))
        return model, torch.randn(self.shape)


class Softmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)


class Attention(nn.Module):
    """`scaled_dot_product_attention` of one tensor with itself, a little changed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(x, x + 1, x - 1)


class FeedForward(nn.Module):
    """Half of the conformer's block: normed, widened, narrowed."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, inner), nn.SiLU(), nn.Linear(inner, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Conformer(nn.Module):
    """One block: feed-forward, attention, convolution over time, feed-forward; each with a way around it."""

    def __init__(self, width: int = WIDTH, heads: int = HEADS, kernel: int = 31) -> None:
        super().__init__()
        self.first, self.last = FeedForward(width, 4 * width), FeedForward(width, 4 * width)
        self.attention_norm, self.attention = nn.LayerNorm(width), nn.MultiheadAttention(width, heads, batch_first=True)
        self.conv_norm = nn.LayerNorm(width)
        self.conv = nn.Sequential(
            nn.Conv1d(width, 2 * width, 1), nn.GLU(1), nn.Conv1d(width, width, kernel, 1, kernel // 2, groups=width),
            nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1),
        )  # fmt: skip
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + 0.5 * self.first(x)
        normed = self.attention_norm(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        x = x + self.conv(self.conv_norm(x).transpose(1, 2)).transpose(1, 2)
        return self.norm(x + 0.5 * self.last(x))


def convolutions(norm: Callable[[int], nn.Module]) -> Callable[[], nn.Module]:
    """Four times convolution, norm, ReLU, of 64 channels."""
    return lambda: nn.Sequential(
        *(layer for _ in range(4) for layer in (nn.Conv2d(64, 64, 3, padding=1), norm(64), nn.ReLU()))
    )


def transformer(activation: str, norm_first: bool) -> Callable[[], nn.Module]:
    return lambda: nn.TransformerEncoderLayer(
        WIDTH, HEADS, 4 * WIDTH, activation=activation, norm_first=norm_first, batch_first=True
    )


_FRAMES, _IMAGE = (1, FRAMES, WIDTH), (1, 64, 32, 32)
_TIME = {1: "T"}
LAYERS = [
    LayerNet("transformer-gelu-prenorm", transformer("gelu", True), _FRAMES),
    LayerNet("transformer-relu-postnorm", transformer("relu", False), _FRAMES),
    LayerNet("transformer-gelu-prenorm-dynamic", transformer("gelu", True), _FRAMES, _TIME),
    LayerNet("conformer", Conformer, _FRAMES),
    LayerNet("conformer-dynamic", Conformer, _FRAMES, _TIME),
    LayerNet("conv-batchnorm", convolutions(nn.BatchNorm2d), _IMAGE),
    LayerNet("conv-groupnorm", convolutions(lambda width: nn.GroupNorm(8, width)), _IMAGE),
    LayerNet("conv-layernorm", convolutions(lambda width: nn.GroupNorm(1, width)), _IMAGE),
    LayerNet("mobile", lambda: nn.Sequential(*(Inverted(32, 6) for _ in range(3))), (1, 32, 28, 28)),
    LayerNet("linear", lambda: nn.Linear(WIDTH, 4 * WIDTH), _FRAMES),
    LayerNet("softmax", Softmax, (1, HEADS, FRAMES, FRAMES)),
    LayerNet("layer_norm", lambda: nn.LayerNorm(WIDTH), _FRAMES),
    LayerNet("batch_norm", lambda: nn.BatchNorm2d(64), _IMAGE),
    LayerNet("gelu", nn.GELU, (1, FRAMES, 4 * WIDTH)),
    LayerNet("gelu-tanh", lambda: nn.GELU("tanh"), (1, FRAMES, 4 * WIDTH)),
    LayerNet("silu", nn.SiLU, (1, FRAMES, 4 * WIDTH)),
    LayerNet("sdpa", Attention, (1, HEADS, FRAMES, WIDTH // HEADS)),
]
