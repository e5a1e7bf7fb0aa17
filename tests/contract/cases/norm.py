"""Normalisation, with statistics and weights that are not the defaults."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from tests.contract.cases import Lazy, build, case, randn, uniform, weight

aten = torch.ops.aten
BATCH = {0: {0: "B"}}
SPACE = {0: {0: "B", 2: "H"}}


def trained(module: Callable[..., nn.Module], *args: object, **kwargs: object) -> Lazy:
    """A module with weights, means and variances of its own."""

    def make() -> nn.Module:
        made = module(*args, **kwargs)
        for parameter in made.parameters():
            parameter.data = torch.randn(parameter.shape).to(parameter.dtype)
        for buffer in made.buffers():
            if buffer.is_floating_point():
                buffer.data = (torch.rand(buffer.shape) + 0.1).to(buffer.dtype)
        return made

    return build(make)


def normed(product: nn.Module, norm: nn.Module, dtype: torch.dtype = torch.float32) -> Lazy:
    """A product with its norm behind it, all with numbers of their own."""
    return trained(lambda: nn.Sequential(product, norm).to(dtype))


class Shared(nn.Module):
    """One convolution before two norms, and one whose result is also read without its norm."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.first, self.second = nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), nn.BatchNorm1d(4)
        self.last, self.third = nn.Conv1d(4, 5, 2, bias=False), nn.BatchNorm1d(5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mid = self.last(self.first(self.conv(x)) - self.second(self.conv(x)))
        return self.third(mid) + mid


STATISTICS = [weight(randn(4)), weight(randn(4)), weight(randn(4)), weight(uniform(0.1, 2.0, 4))]

CASES = [
    case("batch_norm of rows", trained(nn.BatchNorm1d, 4), randn(3, 4)).dynamic(BATCH),
    case("batch_norm 1d", trained(nn.BatchNorm1d, 4), randn(3, 4, 5)).dynamic(SPACE),
    case("batch_norm 2d", trained(nn.BatchNorm2d, 4, affine=False), randn(3, 4, 5, 6)).dynamic(SPACE),
    case("batch_norm 3d", trained(nn.BatchNorm3d, 4), randn(1, 4, 2, 5, 6)),
    case("batch_norm of conv1d", normed(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4)), randn(2, 3, 7)).dynamic(SPACE),
    case("batch_norm of conv1d, depthwise", normed(nn.Conv1d(6, 6, 5, groups=6), nn.BatchNorm1d(6)), randn(2, 6, 9)),
    case(
        "batch_norm of conv1d, depthwise, of any length",
        normed(nn.Conv1d(6, 6, 5, groups=6), nn.BatchNorm1d(6)),
        randn(2, 6, 9),
    ).dynamic(SPACE),
    case("batch_norm of conv1d, pointwise", normed(nn.Conv1d(6, 5, 1), nn.BatchNorm1d(5)), randn(2, 6, 9)),
    case("batch_norm of conv1d, grouped", normed(nn.Conv1d(6, 8, 3, groups=2), nn.BatchNorm1d(8)), randn(2, 6, 9)),
    case(
        "batch_norm of conv1d, several filters a channel",
        normed(nn.Conv1d(6, 12, 3, groups=6), nn.BatchNorm1d(12)),
        randn(2, 6, 9),
    ),
    case(
        "batch_norm of conv2d", normed(nn.Conv2d(4, 6, (3, 2), groups=2), nn.BatchNorm2d(6)), randn(2, 4, 5, 7)
    ).dynamic(SPACE),
    case("batch_norm of conv3d", normed(nn.Conv3d(2, 3, 2, bias=False), nn.BatchNorm3d(3)), randn(2, 2, 4, 5, 3)),
    case(
        "batch_norm of depthwise conv2d",
        normed(nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.BatchNorm2d(4)),
        randn(2, 4, 5, 7),
    ),
    case("batch_norm of linear", normed(nn.Linear(5, 3), nn.BatchNorm1d(3)), randn(4, 5)).dynamic(BATCH),
    case("batch_norm of linear of rank 3", normed(nn.Linear(5, 3), nn.BatchNorm1d(4)), randn(2, 4, 5)),
    case("batch_norm of conv_transpose1d", normed(nn.ConvTranspose1d(3, 4, 3), nn.BatchNorm1d(4)), randn(2, 3, 7)),
    case(
        "batch_norm of conv1d of float64",
        normed(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), torch.float64),
        randn(2, 3, 7, dtype=torch.float64),
    ),
    case(
        "batch_norm of conv1d of float16",
        normed(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), torch.float16),
        randn(2, 3, 7, dtype=torch.float16),
    ).at("very"),  # we leave it, but the engine itself rounds the scaled filter to float16
    case("batch_norm of a shared conv1d", trained(Shared), randn(2, 3, 7)),
    case("batch_norm of its batch", trained(nn.BatchNorm2d, 4, track_running_stats=False), randn(3, 4, 5, 6)).dynamic(
        SPACE
    ),
    case("batch_norm with computed statistics", F.batch_norm, randn(3, 4, 5), randn(4), uniform(0.1, 2.0, 4)),
    case("batch_norm in training", aten.native_batch_norm, randn(3, 4, 5), *STATISTICS, True, 0.1, 1e-5).refused(
        "training mode"
    ),
    case("native_batch_norm", lambda *a: aten.native_batch_norm(*a)[0], randn(3, 4, 5), *STATISTICS, False, 0.1, 1e-5),
    case(
        "native_batch_norm of its batch",
        aten.native_batch_norm,
        randn(3, 4, 5),
        None,
        None,
        None,
        None,
        True,
        0.1,
        1e-5,
    ),
    case(
        "_native_batch_norm_legit_no_training",
        lambda *a: aten._native_batch_norm_legit_no_training(*a)[0],
        randn(3, 4, 5),
        *STATISTICS,
        0.1,
        1e-5,
    ),
    case("layer_norm", trained(nn.LayerNorm, (5, 6)), randn(3, 4, 5, 6)).dynamic({0: {0: "B", 1: "T"}}),
    case("layer_norm without bias", trained(nn.LayerNorm, 6, bias=False), randn(3, 6)).dynamic(BATCH),
    case("layer_norm over a dynamic axis", lambda x: F.layer_norm(x, x.shape[1:]), randn(3, 6, 7)).dynamic(
        {0: {1: "T"}}
    ),
    case("layer_norm of float16", build(lambda: nn.LayerNorm(6).half()), randn(3, 6, dtype=torch.float16)),
    case("native_layer_norm", aten.native_layer_norm, randn(3, 4, 5), [5], weight(randn(5)), None, 1e-3),
    case("group_norm", trained(nn.GroupNorm, 2, 6), randn(3, 6, 4, 5)).dynamic(SPACE),
    case("group_norm of rows", trained(nn.GroupNorm, 3, 6), randn(3, 6)).dynamic(BATCH),
    case("native_group_norm", aten.native_group_norm, randn(3, 6, 4), weight(randn(6)), None, 3, 6, 4, 2, 1e-3),
    case("instance_norm 1d", trained(nn.InstanceNorm1d, 6, affine=True), randn(3, 6, 7)).dynamic(SPACE),
    case("instance_norm 2d", trained(nn.InstanceNorm2d, 6), randn(3, 6, 7, 5)).dynamic(SPACE),
    case(
        "instance_norm with statistics",
        trained(nn.InstanceNorm2d, 6, track_running_stats=True, affine=True),
        randn(3, 6, 7, 5),
    ).dynamic(SPACE),
    case("instance_norm unbatched", trained(nn.InstanceNorm2d, 6), randn(6, 7, 5)),
    case("rms_norm", trained(nn.RMSNorm, (5, 6)), randn(3, 4, 5, 6)).dynamic(BATCH),
    case("rms_norm with eps", trained(nn.RMSNorm, 6, eps=1e-2), randn(3, 4, 6)).dynamic(BATCH),
    case("rms_norm of float16", build(lambda: nn.RMSNorm(6).half()), randn(3, 6, dtype=torch.float16)),
    case("_fused_rms_norm", aten._fused_rms_norm, randn(3, 6), [6], weight(randn(6)), 1e-3),
    case("local_response_norm", build(nn.LocalResponseNorm, 3, 0.3, 0.6, 1.2), randn(3, 5, 6, 7)),
    case("local_response_norm, even size", build(nn.LocalResponseNorm, 4, 0.3, 0.6, 1.2), randn(3, 5, 6)),
    case("normalize", F.normalize, randn(3, 5, 6), dim=1).dynamic(SPACE),
    case("weight_norm", build(lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 5))), randn(3, 4)),
    case("spectral_norm", build(lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 5))), randn(3, 4)),
]
