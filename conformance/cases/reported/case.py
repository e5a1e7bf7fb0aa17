"""What one net of suite `reported` consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

Axes = Mapping[str, Mapping[int, Any]]
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class ReportedNet:
    """A net, its inputs as a function of the sizes, the axes that vary, and the sizes: first the traced ones."""

    make: Callable[[], nn.Module]
    inputs: Callable[[Sizes], dict[str, Tensor]]
    axes: Axes
    sizes: Sequence[Sizes]


class Function(nn.Module):
    """A function of the inputs, with the layers that it uses."""

    def __init__(self, function: Callable[..., Any], **layers: nn.Module | Tensor) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            if isinstance(layer, nn.Module):
                self.add_module(name, layer)
            else:
                self.register_parameter(name, nn.Parameter(layer))

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def batch_and_time(make: Callable[[], nn.Module], *shape: int) -> ReportedNet:
    """Return a net of one input of batch, time and these axes."""
    sizes = [{"B": b, "T": t} for b, t in ((2, 9), (1, 1), (3, 2), (1, 20), (2, 64))]
    return ReportedNet(make, lambda s: {"x": torch.randn(s["B"], s["T"], *shape)}, {"x": {0: "B", 1: "T"}}, sizes)


def images(make: Callable[[], nn.Module], channels: int, *sizes: tuple[int, int]) -> ReportedNet:
    """Return a net of one image of free height and width, traced at the first of these sizes."""
    return ReportedNet(
        make,
        lambda s: {"x": torch.randn(2, channels, s["H"], s["W"])},
        {"x": {2: "H", 3: "W"}},
        [{"H": h, "W": w} for h, w in sizes],
    )
