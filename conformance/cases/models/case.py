"""What a case of the suite `models` is: an architecture of a library, small, with random weights and example inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Inputs = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelCase:
    """One architecture. `make` and `inputs` run under a fixed seed, so that every session sees the same numbers."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], Inputs]
    dynamic_axes: dict[str, dict[int, str]] | None = None

    def build(self, seed: int) -> tuple[nn.Module, Inputs]:
        torch.manual_seed(seed)
        return weathered(self.make().eval()), self.inputs()

    def axes_with_batch(self, inputs: Inputs) -> dict[str, dict[int, str]]:
        """Return the dynamic axes, and the batch, which is the first axis of every tensor."""
        declared = self.dynamic_axes or {}
        tensors = [name for name, value in inputs.items() if isinstance(value, torch.Tensor)]
        return {name: {0: "B", **declared.get(name, {})} for name in tensors}


def weathered(model: nn.Module) -> nn.Module:
    """Weights as after training: what starts as all zeros or all ones would hide whether it is used at all."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point() and parameter.numel() > 1 and parameter.std() < 1e-4:
                parameter.add_(0.1 * torch.randn_like(parameter))
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.add_(0.1 * torch.randn_like(buffer))
            elif name.endswith("running_var"):
                buffer.mul_(0.5 + torch.rand_like(buffer))
    return model


def calibrated(model: nn.Module, *inputs: torch.Tensor) -> nn.Module:
    """Batch norms that know the statistics of their inputs, where a deep net without them is chaotic.

    Without, numbers grow from layer to layer until a rounding error in the input changes the third digit of the output.
    """
    norms = [m for m in model.eval().modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = None
        norm.train()
    with torch.no_grad():
        model(*inputs)
    return model.eval()


def image(*shape: int, name: str = "x") -> Callable[[], Inputs]:
    """Random pictures: [batch, channels, height, width], or a clip with time in third place."""
    return lambda: {name: torch.randn(shape)}


def tokens(vocabulary: int, *shape: int, name: str = "input_ids") -> Callable[[], Inputs]:
    """Random token numbers: [batch, time]."""
    return lambda: {name: torch.randint(1, vocabulary, shape)}
