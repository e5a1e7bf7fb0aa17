"""What a case of the suite `models` is: an architecture of a library, small, with random weights and example inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Inputs = dict[str, Any]
_SETTLING = 15
"""Number of examples besides the first that batch norms get their statistics from."""
_BIAS = 0.5
"""Added to the biases of batch norms, whose inputs have deviation 1."""


@dataclass(frozen=True, slots=True)
class ModelCase:
    """One architecture. `make` and `inputs` run under a fixed seed, so that every session sees the same values."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], Inputs]
    dynamic_axes: dict[str, dict[int, str]] | None = None

    def build(self, seed: int) -> tuple[nn.Module, Inputs]:
        """Return the model with its example inputs; its activations spread as after training."""
        torch.manual_seed(seed)
        model, inputs = spread_weights(self.make().eval()), self.inputs()
        return settle_batch_norms(model, [inputs, *(self.inputs() for _ in range(_SETTLING))]), inputs

    def axes_with_batch(self, inputs: Inputs) -> dict[str, dict[int, str]]:
        """Return the dynamic axes, and the batch, which is the first axis of every tensor."""
        declared = self.dynamic_axes or {}
        tensors = [name for name, value in inputs.items() if isinstance(value, torch.Tensor)]
        return {name: {0: "B", **declared.get(name, {})} for name in tensors}


def spread_weights(model: nn.Module) -> nn.Module:
    """Give weights spread as after training: what starts as all zeros or all ones would hide whether it is used.

    Matrices, kernels and gains of norms that shrink what they multiply are enlarged: activations of order one stay so.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.is_floating_point() or parameter.numel() < 2:
                continue
            if parameter.std() < 1e-4:
                parameter.add_(0.1 * torch.randn_like(parameter))
            elif parameter.dim() > 1 or name.rpartition(".")[2] == "weight":
                target_size = math.sqrt(parameter.shape[0] / parameter.numel())
                size = max(float(parameter.std()), abs(float(parameter.mean())))  # gains are of one sign
                parameter.mul_(max(1.0, target_size / size))
    return model


def settle_batch_norms(model: nn.Module, examples: Sequence[Inputs]) -> nn.Module:
    """Give batch norms the statistics of what they normalise, one after the other in one run of the model.

    Without them values shrink or grow from layer to layer, until the outputs are below every tolerance, or a rounding
    error of the input changes their third digit. The examples are one batch; few would make it look narrow. The biases
    grow, since rectifiers after centred norms amplify the rounding of each layer, which trained nets do not.
    """

    def settle(norm: Any, args: tuple[torch.Tensor, ...]) -> None:
        over = [axis for axis in range(args[0].dim()) if axis != 1]
        if norm.running_var is not None:
            norm.running_mean.copy_(args[0].mean(over))
            norm.running_var.copy_(args[0].var(over))
        if norm.bias is not None:
            norm.bias.add_(_BIAS)

    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return model
    hooks = [norm.register_forward_pre_hook(settle) for norm in norms]
    with torch.no_grad():
        batch = {name: torch.cat([example[name] for example in examples]) for name in examples[0]}
        try:
            model(**batch)
        except (RuntimeError, AssertionError):  # it holds something of the size of one example
            model(**examples[0])
    for hook in hooks:
        hook.remove()
    return model


def image(*shape: int, name: str = "x") -> Callable[[], Inputs]:
    """Random pictures: [batch, channels, height, width], or a clip with time in third place."""
    return lambda: {name: torch.randn(shape)}


def tokens(vocabulary: int, *shape: int, name: str = "input_ids") -> Callable[[], Inputs]:
    """Random token ids: [batch, time]."""
    return lambda: {name: torch.randint(1, vocabulary, shape)}
