"""The quantised nets of torchvision, with random weights."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.ao.quantization as ao
from torch import nn
from torchvision.models import quantization as tv

from conformance.cases.int8.case import Inputs, Int8Net


def _build(name: str, size: int) -> tuple[Any, Inputs]:
    more = {"aux_logits": False, "init_weights": True} if name in ("googlenet", "inception_v3") else {}
    try:
        model = getattr(tv, name)(weights=None, quantize=False, **more)
    except TypeError:
        model = getattr(tv, name)(weights=None, quantize=False)
    images = [torch.randn(4, 3, size, size) for _ in range(3)]
    with torch.no_grad():
        _measure_statistics(model.train(), images)
        model.eval()
        model.fuse_model(is_qat=False)
        model.qconfig = ao.get_default_qconfig("x86")
        ao.prepare(model, inplace=True)
        for image in images:
            model(image)
    return ao.convert(model), {"x": torch.randn(1, 3, size, size)}


def _measure_statistics(model: nn.Module, images: list[torch.Tensor]) -> None:
    """Give the norms the statistics of these images: random weights would let activations vanish or explode."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None
    for image in images:
        model(image)


NAMES = {
    "resnet18": 96, "mobilenet_v2": 96, "mobilenet_v3_large": 96, "shufflenet_v2_x1_0": 96, "googlenet": 96,
    "inception_v3": 128,
}  # fmt: skip
CASES: dict[str, Int8Net] = {f"torchvision-{n}": Int8Net(partial(_build, n, s), spread=True) for n, s in NAMES.items()}
