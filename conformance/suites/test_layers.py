"""Suite `layers`: the layers of torch.nn that speech, audio and vision nets are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest
import torch
from torch import nn

from conformance.checks.at_one import export_at_one
from t2n_core import ModelExport

Axes = dict[int, str]

LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], Axes]] = {
    # name: (layer, input shape, dynamic axes of the input)
    "linear": (lambda: nn.Linear(7, 5), (3, 7), {0: "B"}),
    "linear_3d_nobias": (lambda: nn.Linear(7, 5, bias=False), (2, 3, 7), {0: "B", 1: "T"}),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1), (2, 4, 17), {0: "B", 2: "T"}),
    "conv1d_rest": (lambda: nn.Conv1d(4, 6, 5, stride=2, padding=2), (2, 4, 18), {2: "T"}),
    "conv1d_depthwise": (lambda: nn.Conv1d(6, 6, 5, padding=4, dilation=2, groups=6), (2, 6, 19), {2: "T"}),
    "conv2d": (lambda: nn.Conv2d(3, 5, (3, 2), stride=(2, 1), padding=(1, 0)), (2, 3, 11, 9), {0: "B"}),
    "conv2d_dynamic": (lambda: nn.Conv2d(3, 5, (3, 2), (2, 3), (1, 0)), (2, 3, 12, 13), {2: "H", 3: "W"}),
    "conv2d_groups": (lambda: nn.Conv2d(4, 6, 3, groups=2, dilation=(2, 1), bias=False), (1, 4, 9, 8), {}),
    "conv2d_same": (lambda: nn.Conv2d(3, 4, (4, 3), padding="same"), (2, 3, 7, 8), {}),
    "conv2d_reflect": (lambda: nn.Conv2d(3, 4, 3, padding=(2, 1), padding_mode="reflect"), (2, 3, 7, 8), {}),
    "conv3d": (lambda: nn.Conv3d(2, 3, (2, 3, 1)), (2, 2, 5, 6, 4), {}),
    "conv_transpose1d": (lambda: nn.ConvTranspose1d(4, 3, 5, stride=2, padding=1, output_padding=1), (2, 4, 7), {}),
    "conv_transpose2d": (lambda: nn.ConvTranspose2d(4, 6, (3, 2), stride=2, groups=2), (2, 4, 5, 6), {}),
    "batch_norm1d": (lambda: _as_after_training(nn.BatchNorm1d(5)), (3, 5), {0: "B"}),
    "batch_norm2d": (lambda: _as_after_training(nn.BatchNorm2d(4)), (2, 4, 5, 6), {0: "B"}),
    "layer_norm": (lambda: _as_after_training(nn.LayerNorm(7)), (2, 3, 7), {0: "B", 1: "T"}),
    "layer_norm_2d": (lambda: nn.LayerNorm((3, 7), elementwise_affine=False), (2, 3, 7), {0: "B"}),
    "group_norm": (lambda: _as_after_training(nn.GroupNorm(3, 6)), (2, 6, 5), {0: "B", 2: "T"}),
    "instance_norm": (lambda: nn.InstanceNorm1d(4, affine=True), (2, 4, 9), {0: "B"}),
    "rms_norm": (lambda: _as_after_training(nn.RMSNorm(7)), (2, 3, 7), {1: "T"}),
    "max_pool1d": (lambda: nn.MaxPool1d(3, 2, padding=1), (2, 3, 13), {0: "B"}),
    "max_pool2d": (lambda: nn.MaxPool2d((3, 2), (2, 1), padding=(1, 0)), (2, 3, 9, 8), {}),
    "max_pool2d_ceil": (lambda: nn.MaxPool2d(3, 2, ceil_mode=True), (2, 3, 10, 8), {}),
    "avg_pool1d": (lambda: nn.AvgPool1d(4, 2, padding=1), (2, 3, 13), {0: "B"}),
    "avg_pool2d": (lambda: nn.AvgPool2d((3, 2), padding=(1, 1)), (2, 3, 9, 8), {}),
    "avg_pool2d_exclude": (lambda: nn.AvgPool2d(3, 2, padding=1, count_include_pad=False), (2, 3, 9, 8), {}),
    "adaptive_avg_pool2d": (lambda: nn.AdaptiveAvgPool2d((3, 2)), (2, 3, 7, 9), {}),
    "global_avg_pool": (lambda: nn.AdaptiveAvgPool2d(1), (2, 3, 7, 9), {0: "B"}),
    "embedding": (lambda: nn.Embedding(11, 4), (2, 5), {1: "T"}),
    "softmax": (lambda: nn.Softmax(dim=1), (2, 5, 3), {0: "B"}),
    "log_softmax": (lambda: nn.LogSoftmax(dim=-1), (2, 5, 3), {1: "T"}),
    "gelu": (nn.GELU, (3, 7), {0: "B"}),
    "gelu_tanh": (lambda: nn.GELU(approximate="tanh"), (3, 7), {}),
    "silu": (nn.SiLU, (3, 7), {}),
    "elu": (lambda: nn.ELU(alpha=0.4), (3, 7), {}),
    "leaky_relu": (lambda: nn.LeakyReLU(0.2), (3, 7), {}),
    "prelu": (lambda: nn.PReLU(4), (2, 4, 5), {0: "B"}),
    "hardswish": (nn.Hardswish, (3, 7), {}),
    "hardsigmoid": (nn.Hardsigmoid, (3, 7), {}),
    "relu6": (nn.ReLU6, (3, 7), {}),
    "mish": (nn.Mish, (3, 7), {}),
    "softplus": (lambda: nn.Softplus(beta=2.0, threshold=5.0), (3, 7), {}),
    "glu": (lambda: nn.GLU(dim=1), (2, 6, 3), {0: "B"}),
    "flatten": (nn.Flatten, (2, 3, 4), {0: "B"}),
    "upsample_nearest": (lambda: nn.Upsample(scale_factor=2), (2, 3, 4, 5), {}),
    "upsample_bilinear": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (2, 3, 4, 5), {}),
    "pixel_shuffle": (lambda: nn.PixelShuffle(2), (2, 8, 3, 5), {0: "B"}),
    "zero_pad": (lambda: nn.ZeroPad2d((1, 2, 0, 3)), (2, 3, 4, 5), {0: "B"}),
    "reflection_pad": (lambda: nn.ReflectionPad1d((2, 1)), (2, 3, 7), {0: "B"}),
    "replication_pad": (lambda: nn.ReplicationPad1d((2, 1)), (2, 3, 7), {0: "B"}),
    "dropout": (lambda: nn.Dropout(0.5), (3, 7), {0: "B"}),
    "attention": (lambda: _Attention(8, 2), (2, 5, 8), {0: "B", 1: "T"}),
    "transformer_layer": (lambda: nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), (2, 5, 8), {1: "T"}),
}  # fmt: skip


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self.inner(input, input, input, need_weights=False)[0]


def _as_after_training(layer: nn.Module) -> nn.Module:
    """Statistics and weights as after training, where fresh ones would hide mistakes."""
    for name, tensor in [*layer.named_parameters(), *layer.named_buffers()]:
        if tensor.is_floating_point():
            with torch.no_grad():
                tensor.copy_(torch.rand_like(tensor) + 0.5 if "var" in name else torch.randn_like(tensor))
    return layer


@lru_cache(maxsize=2)
def export_of(name: str, fixed: bool = False) -> ModelExport:
    """Captured once for all engines: they follow each other."""
    layer, x, axes = _built(name)
    return ModelExport(layer, (x,), input_names=["x"], dynamic_axes={"x": axes} if axes and not fixed else None)


def _built(name: str) -> tuple[nn.Module, torch.Tensor, Axes]:
    make, shape, axes = LAYERS[name]
    torch.manual_seed(sum(map(ord, name)))
    layer = make().eval()
    return layer, torch.randint(0, 11, shape) if name == "embedding" else torch.randn(shape), axes


@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("name", list(LAYERS))
def test_layer(name: str, nnef_export: Any) -> None:
    nnef_export(export_of(name)).assert_parity("approximate")


@lru_cache(maxsize=2)
def export_of_one(name: str) -> ModelExport:
    """Captured once for all engines, from an example of size 1."""
    layer, x, axes = _built(name)
    return export_at_one(layer, {"x": x}, {"x": axes}, input_names=["x"])


@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("name", [name for name, (_, _, axes) in LAYERS.items() if axes])
def test_layer_traced_at_1(name: str, nnef_export: Any) -> None:
    nnef_export(export_of_one(name)).assert_parity("approximate")


@pytest.mark.nnef_export(target="khronos")
@pytest.mark.parametrize("name", list(LAYERS))
def test_layer_in_the_standard(name: str, nnef_export: Any) -> None:
    """Check a layer with fixed sizes, in operators of the standard alone."""
    nnef_export(export_of(name, fixed=True)).assert_parity("approximate")
