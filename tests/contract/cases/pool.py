"""Pooling. Maxima are of negative numbers, which shows padding that counts."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.contract.cases import build, case, randint, randn, tensor, uniform

aten = torch.ops.aten
SPACE = {0: {0: "B", 2: "H"}}


def below(*shape: int) -> object:
    return uniform(-2.0, -1.0, *shape)


INFINITE = tensor([[[[-2.0 if (h, w) == (4, 3) else -math.inf for w in range(7)] for h in range(9)]] * 3])
"""All -inf but for one element of each channel."""
PADDED = {
    "padded": lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 1), return_indices=True)[1],
    "dilated": lambda x: F.max_pool2d(x, 3, 2, 1, 2, return_indices=True)[1],
    "ceil": lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True)[1],
}

CASES = [
    *(
        case(f"places of maxima among infinities, {name}", f, INFINITE)
        for name, f in {
            **PADDED,
            "of float16": lambda x: F.max_pool2d(x.half(), 3, 2, 1, return_indices=True)[1],
            "adaptive": lambda x: F.adaptive_max_pool2d(x, (4, 2), return_indices=True),
            "adaptive, of float16": lambda x: F.adaptive_max_pool2d(x.half(), (4, 2), return_indices=True),
        }.items()
    ),
    *(
        case(f"places of maxima among infinities, {name}, dynamic", f, INFINITE).dynamic({0: {2: "H", 3: "W"}})
        for name, f in PADDED.items()
    ),
    case(
        "adaptive_max_pool1d of infinities",
        lambda x: F.adaptive_max_pool1d(x, 3, return_indices=True),
        tensor([[-math.inf] * 7, [*[-math.inf] * 5, 1.0, -math.inf]]),
    ).dynamic({0: {0: "C"}}),
    *(
        case(f"places of maxima, {name}", f, randn(2, 3, 9, 7)).dynamic({0: {0: "B", 2: "H", 3: "W"}})
        for name, f in {
            "plain": lambda x: F.max_pool2d(x, 3, 2, return_indices=True),
            "padded": lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0), return_indices=True),
            "dilated": lambda x: F.max_pool2d(x, 2, 1, 0, 2, return_indices=True),
            "ceil": lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True, return_indices=True),
            "of a row": lambda x: F.max_pool1d(x[:, :, 0], 3, 2, 1, return_indices=True),
            "adaptive": lambda x: F.adaptive_max_pool2d(x, (3, 2), return_indices=True),
            "adaptive, of a row": lambda x: F.adaptive_max_pool1d(x[:, :, 0], 4, return_indices=True),
        }.items()
    ),
    case(
        "places of maxima, of integers",
        lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
        randint(-9, 9, 2, 3, 9, 7),
    ),
    case("avg_pool1d of dynamic channels", nn.functional.avg_pool1d, randn(2, 3, 9), 3, 2).dynamic(
        {0: {0: "B", 1: "T"}}
    ),
    case("max_pool2d of dynamic channels", nn.functional.max_pool2d, randn(3, 7, 6), 2, 1, 1).dynamic({0: {0: "C"}}),
    case("avg_pool2d of integers", nn.functional.avg_pool2d, randint(-9, 9, 1, 2, 6, 8), 2).refused(
        "the average of int64"
    ),
    case("max_pool1d", build(nn.MaxPool1d, 3, 2, 1), below(2, 3, 17)).dynamic(SPACE),
    case("max_pool1d, aten", aten.max_pool1d, below(2, 3, 17), [3], [2], [1]),
    case("max_pool1d, windows apart, ceil", build(nn.MaxPool1d, 2, 5, ceil_mode=True), below(2, 3, 17)),
    case("max_pool1d, windows apart, padded, ceil", build(nn.MaxPool1d, 2, 5, 1, ceil_mode=True), below(2, 3, 14)),
    case("max_pool2d", build(nn.MaxPool2d, (3, 2), (2, 3), (1, 0), (1, 2)), below(2, 3, 17, 15)).dynamic(SPACE),
    case("max_pool2d unbatched", build(nn.MaxPool2d, (3, 2)), below(3, 17, 15)).dynamic({0: {1: "H"}}),
    case("max_pool2d, ceil", build(nn.MaxPool2d, (3, 2), (2, 3), (1, 1), ceil_mode=True), below(2, 3, 16, 15)),
    case("max_pool2d, ceil, dynamic", build(nn.MaxPool2d, 3, 2, ceil_mode=True), below(2, 3, 16, 15)).dynamic(SPACE),
    case(
        "max_pool2d, ceil, padded, dynamic", build(nn.MaxPool2d, 3, 2, 1, ceil_mode=True), below(2, 3, 16, 15)
    ).dynamic(SPACE),
    case("max_pool1d, points apart, ceil, dynamic", build(nn.MaxPool1d, 1, 2, ceil_mode=True), below(2, 3, 16)).dynamic(
        SPACE
    ),
    case(
        "max_pool1d, windows apart, ceil, dynamic", build(nn.MaxPool1d, 2, 5, 1, ceil_mode=True), below(2, 3, 14)
    ).dynamic(SPACE),
    case(
        "max_pool1d, dilated, ceil, dynamic", build(nn.MaxPool1d, 3, 4, 0, 2, ceil_mode=True), below(2, 3, 18)
    ).dynamic(SPACE),
    case("max_pool1d, dilated, padded, ceil, dynamic", build(nn.MaxPool1d, 3, 4, 1, 2, ceil_mode=True), below(2, 3, 18))
    .dynamic(SPACE)
    .refused("ceil_mode with padding 1 and dilation 2"),
    case("max_pool3d", build(nn.MaxPool3d, (3, 2, 1), (1, 2, 2), (1, 1, 0)), below(2, 3, 5, 6, 7)).dynamic(SPACE),
    case("max_pool1d_with_indices", build(nn.MaxPool1d, 3, return_indices=True), randn(3, 16)),
    case(
        "max_pool2d_with_indices", build(nn.MaxPool2d, (3, 2), (2, 3), (1, 1), return_indices=True), below(2, 3, 16, 15)
    ).dynamic({0: {0: "B"}}),
    case("max_pool3d_with_indices", build(nn.MaxPool3d, 2, 1, return_indices=True), below(1, 2, 3, 4, 5)),
    case("avg_pool1d", build(nn.AvgPool1d, 3, 2, 1), randn(2, 3, 17)).dynamic(SPACE),
    case("avg_pool1d, padding not counted", build(nn.AvgPool1d, 3, 2, 1, False, False), randn(2, 3, 17)).dynamic(SPACE),
    case("avg_pool2d", build(nn.AvgPool2d, (3, 2), (2, 3), (1, 1)), randn(2, 3, 17, 15)).dynamic(SPACE),
    case("avg_pool2d, ceil", build(nn.AvgPool2d, (3, 2), (2, 3), (1, 1), True), randn(2, 3, 16, 15)),
    case(
        "avg_pool2d, ceil, not counted", build(nn.AvgPool2d, (3, 4), (2, 3), (1, 1), True, False), randn(2, 3, 16, 15)
    ),
    case("avg_pool2d, ceil, dynamic", build(nn.AvgPool2d, (3, 4), (2, 3), 0, True), randn(2, 3, 16, 15)).dynamic(SPACE),
    case(
        "avg_pool2d, ceil, padded, dynamic", build(nn.AvgPool2d, (3, 2), (2, 3), (1, 1), True), randn(2, 3, 16, 15)
    ).dynamic(SPACE),
    case(
        "avg_pool2d, ceil, padded, not counted, dynamic",
        build(nn.AvgPool2d, (3, 4), (2, 5), (1, 1), True, False),
        randn(2, 3, 16, 15),
    ).dynamic(SPACE),
    case("avg_pool2d, divisor", build(nn.AvgPool2d, (3, 2), (2, 3), (1, 1), False, True, 5), randn(2, 3, 17, 15)),
    case("avg_pool2d, divisor, ceil", build(nn.AvgPool2d, (3, 2), (2, 3), (1, 1), True, True, 5), randn(2, 3, 16, 15)),
    case("avg_pool2d unbatched", build(nn.AvgPool2d, (3, 2)), randn(3, 17, 15)).dynamic({0: {1: "H"}}),
    case("avg_pool2d of float64", build(nn.AvgPool2d, (3, 2)), randn(2, 3, 7, 5, dtype=torch.float64)),
    case("avg_pool2d of float16", build(nn.AvgPool2d, (3, 2), 2, 1), randn(2, 3, 7, 5, dtype=torch.float16)),
    case("avg_pool3d", build(nn.AvgPool3d, (3, 2, 1), (1, 2, 2), (1, 1, 0)), randn(2, 3, 5, 6, 7)).dynamic(SPACE),
    case("adaptive_avg_pool1d to 1", build(nn.AdaptiveAvgPool1d, 1), randn(2, 3, 17)).dynamic(SPACE),
    case("adaptive_avg_pool1d", build(nn.AdaptiveAvgPool1d, 5), randn(2, 3, 17)).dynamic(SPACE),
    case("adaptive_avg_pool2d, one axis kept", build(nn.AdaptiveAvgPool2d, (4, None)), randn(2, 3, 16, 15)).dynamic(
        {0: {0: "B", 3: "W"}}
    ),
    *(
        case(f"adaptive_avg_pool to {name}", function, randn(2, 7, 5)).dynamic({0: {1: "T"}})
        for name, function in {
            "half of a size": lambda x: F.adaptive_avg_pool2d(x, (x.shape[1] // 2 + 1, 3)),
            "a third, of one axis": lambda x: F.adaptive_avg_pool1d(x.mT, (x.shape[1] + 2) // 3),
            "one and a half": lambda x: F.adaptive_avg_pool1d(x.mT, (3 * x.shape[1] + 1) // 2),
            "two thirds of an axis": lambda x: F.adaptive_avg_pool3d(x[None], (1, (2 * x.shape[1] + 2) // 3, None)),
            "a size, area of a quarter": lambda x: F.interpolate(x.mT, size=(x.shape[1] + 3) // 4, mode="area"),
            "area of a half": lambda x: F.interpolate(torch.cat([x, x], 1).mT, scale_factor=0.5, mode="area"),
            "area of six tenths": lambda x: F.interpolate(
                torch.cat([x, x], 1)[:, None], scale_factor=(0.6, 1), mode="area"
            ),
            "area of 1.7": lambda x: F.interpolate(x.mT, scale_factor=1.7, mode="area"),
            "area with infinities": lambda x: F.interpolate(
                torch.where(x > 1, torch.inf, torch.cat([x, x], 1)[:, ::2]).mT, scale_factor=1.3, mode="area"
            ),
        }.items()
    ),
    case(
        "adaptive_avg_pool of float16 to half of a size",
        lambda x: F.adaptive_avg_pool1d(x, x.shape[2] // 2 + 1),
        randn(2, 3, 7, dtype=torch.float16),
    )
    .dynamic({0: {2: "T"}})
    .at("close"),
    case(
        "adaptive_avg_pool to a size of another",
        lambda x, y: F.adaptive_avg_pool1d(x, y.shape[0]),
        randn(2, 3, 7),
        randn(4),
    )
    .dynamic({0: {2: "T"}, 1: {0: "S"}})
    .refused("no fraction of the axis"),
    case("adaptive_avg_pool2d", build(nn.AdaptiveAvgPool2d, (5, 7)), randn(2, 3, 16, 15)),
    case("adaptive_avg_pool2d, equal windows", build(nn.AdaptiveAvgPool2d, (7, 4)), randn(2, 3, 8, 13)).dynamic(
        {0: {0: "B"}}
    ),
    case("adaptive_avg_pool2d, equal windows of one sample", build(nn.AdaptiveAvgPool2d, (7, 3)), randn(3, 8, 4)),
    case(
        "adaptive_avg_pool1d, equal windows of infinities",
        lambda x: F.adaptive_avg_pool1d(x / x.floor(), 6),
        tensor([[[0.5, 1.5, 2.5, -0.5, 1.25, 1.0, 3.5]]]),
    ),
    case("adaptive_avg_pool2d of dynamic axes", build(nn.AdaptiveAvgPool2d, (5, 7)), randn(2, 3, 16, 15)).dynamic(
        {0: {2: "H", 3: "W"}}
    ),
    case("_adaptive_avg_pool2d", aten._adaptive_avg_pool2d, randn(2, 3, 16, 15), [5, 3]),
    case("adaptive_avg_pool3d", build(nn.AdaptiveAvgPool3d, (2, 3, 1)), randn(2, 3, 6, 7, 5)),
    case("_adaptive_avg_pool3d", aten._adaptive_avg_pool3d, randn(2, 3, 6, 7, 5), [4, 3, 1]),
    case("adaptive_max_pool1d", build(nn.AdaptiveMaxPool1d, 5), below(2, 3, 17)).dynamic({0: {0: "B"}}),
    case("adaptive_max_pool1d to more", build(nn.AdaptiveMaxPool1d, 9, return_indices=True), below(2, 3, 5)),
    case("adaptive_max_pool2d", build(nn.AdaptiveMaxPool2d, (5, 3), return_indices=True), below(2, 3, 17, 12)),
    case("adaptive_max_pool3d", build(nn.AdaptiveMaxPool3d, (5, 3, 1)), below(2, 3, 7, 12, 4)),
    case("lp_pool of negative numbers", nn.LPPool1d(1.5, 2), randn(1, 3, 7)),
    case("lp_pool", build(nn.LPPool2d, 2, (3, 2), (2, 1)), randn(2, 3, 8, 9)),
    case("max_unpool1d", lambda x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2), randn(2, 3, 8)),
    case("max_unpool2d", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), randn(2, 3, 6, 8)),
    case("max_unpool3d", lambda x: F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2), randn(2, 3, 4, 6, 2)),
]
