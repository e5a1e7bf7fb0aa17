"""Sampling at given places, some of them outside."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.contract.cases import case, randn, uniform

aten = torch.ops.aten
BORDERS = ("zeros", "border", "reflection")
BATCH = {0: {0: "B"}, 1: {0: "B"}}

CASES = [
    *(
        case(
            f"{mode}, {border}, corners {corners}",
            F.grid_sample,
            randn(2, 3, 5, 7),
            uniform(-1.3, 1.3, 2, 4, 6, 2),
            mode,
            border,
            corners,
        ).dynamic(BATCH)
        for mode in ("bilinear", "nearest")
        for border in BORDERS
        for corners in (False, True)
    ),
    *(
        case(
            f"bicubic, {border}",
            F.grid_sample,
            randn(1, 2, 4, 5),
            uniform(-1.3, 1.3, 1, 2, 3, 2),
            "bicubic",
            border,
            False,
        )
        for border in BORDERS
    ),
    *(
        case(
            f"3d, {mode}, {border}, corners {corners}",
            F.grid_sample,
            randn(2, 3, 5, 7, 4),
            uniform(-1.6, 1.6, 2, 4, 6, 3, 3),
            mode,
            border,
            corners,
        ).dynamic({0: {0: "B", 3: "H"}, 1: {0: "B", 1: "D"}} if mode == "bilinear" else BATCH)
        for mode in ("bilinear", "nearest")
        for border in BORDERS
        for corners in (False, True)
    ),
    *(
        case(
            f"{mode}, {border}, corners {corners}, of any size",
            F.grid_sample,
            randn(1, 2, 5, 7),
            uniform(-1.6, 1.4, 1, 4, 6, 2),
            mode,
            border,
            corners,
        ).dynamic({0: {2: "H", 3: "W"}})
        for mode in ("bilinear", "nearest")
        for border in BORDERS
        for corners in (False, True)
    ),
    case("grid_sampler_2d", aten.grid_sampler_2d, randn(2, 3, 5, 7), uniform(-1.3, 1.3, 2, 4, 6, 2), 0, 0, False),
    case("grid_sampler_3d", aten.grid_sampler_3d, randn(2, 3, 5, 7, 4), uniform(-1.2, 1.2, 2, 4, 6, 3, 3), 0, 0, False),
    case("affine_grid", F.affine_grid, randn(2, 2, 3), (2, 3, 4, 5), align_corners=False),
]
