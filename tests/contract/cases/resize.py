"""Resizing by factors and to sizes."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tests.contract.cases import Case, case, randint, randn

aten = torch.ops.aten
SPACE = {0: {0: "B", 2: "H"}}
LINE, PLANE, SOLID = (2, 3, 7), (2, 3, 7, 5), (2, 3, 4, 5, 6)


def to(name: str, shape: tuple[int, ...], **how: Any) -> Case:
    return case(name, F.interpolate, randn(*shape), **how)


def resized_twice(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    def up(y: torch.Tensor) -> torch.Tensor:
        return F.interpolate(y.mT, scale_factor=2, mode="linear").mT

    attended = ((x @ x.mT).softmax(-1) @ x).repeat(1, 2, 1)
    again, plain = up(x.transpose(0, 1).contiguous().transpose(0, 1) * 1), up(x)
    return attended, again, plain / plain.shape[1]


def positions(mode: str, table: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Learned positions for an image of another size, as in DINOv2."""
    factors = [(size + 0.1) / extent for size, extent in zip(x.shape[2:], table.shape[2:], strict=True)]
    return x + F.interpolate(table, scale_factor=factors, mode=mode)


HW = {1: {2: "H", 3: "W"}}
CASES = [
    *(
        case(
            f"{mode} by factors of sizes", lambda t, x, m=mode: positions(m, t, x), randn(1, 2, 5, 4), randn(1, 2, 6, 9)
        ).dynamic(HW)
        for mode in ("bilinear", "bicubic")
    ),
    case("nearest by factors of sizes", lambda t, x: positions("nearest", t, x), randn(1, 2, 5, 4), randn(1, 2, 6, 9))
    .dynamic(HW)
    .refused("the scale_factor of interpolate is computed from sizes"),
    case("padding with a number of sizes", lambda x: F.pad(x, (0, 1), value=1 / x.shape[2]), randn(1, 2, 5)).dynamic(
        {0: {2: "T"}}
    ),
    case("steps of a number of sizes", lambda x: x + torch.arange(0, 1, 1 / x.shape[2])[: x.shape[2]], randn(1, 2, 5))
    .dynamic({0: {2: "T"}})
    .refused("computes a number from sizes where PyTorch takes one that is known at capture"),
    to("nearest 1d, times 2", LINE, scale_factor=2).dynamic(SPACE),
    to("nearest 2d, times 2 and 3", PLANE, scale_factor=(2, 3)).dynamic(SPACE),
    to("nearest 2d", PLANE, size=(11, 3)).dynamic(SPACE),
    to("nearest 1d to a multiple of some sizes", (2, 3, 10), size=25).dynamic({0: {2: "T"}}),
    to("nearest 2d, fractions", PLANE, scale_factor=(1.5, 0.6)),
    to("nearest 2d, fractions, recomputed", PLANE, scale_factor=(1.5, 0.6), recompute_scale_factor=True),
    to("nearest 2d, one and a half, dynamic", PLANE, scale_factor=1.5).dynamic(SPACE),
    to("nearest 2d, a half, dynamic", (2, 3, 8, 6), scale_factor=0.5).dynamic(SPACE),
    to("nearest 2d, six tenths, dynamic", PLANE, scale_factor=0.6).dynamic(SPACE),
    *(
        to(f"{mode}, times {factor}, dynamic", LINE, scale_factor=factor, mode=mode).dynamic({0: {2: "T"}})
        for mode, factor in (
            ("nearest", 1.7),
            ("nearest", 1.1),
            ("nearest-exact", 1.3),
            ("linear", 1.7),
            ("linear", 0.6),
        )
    ),
    to("nearest, times 1.7, recomputed, dynamic", LINE, scale_factor=1.7, recompute_scale_factor=True).dynamic(
        {0: {2: "T"}}
    ),
    to("linear, corners, times 1.7, dynamic", LINE, scale_factor=1.7, mode="linear", align_corners=True).dynamic(
        {0: {2: "T"}}
    ),
    to("bilinear, times 1.3 and 0.6, dynamic", PLANE, scale_factor=(1.3, 0.6), mode="bilinear").dynamic(
        {0: {2: "H", 3: "W"}}
    ),
    to("bicubic, times 1.1, dynamic", PLANE, scale_factor=1.1, mode="bicubic").dynamic(SPACE),
    *(
        to(f"nearest, times {factor}, dynamic", LINE, scale_factor=factor).dynamic({0: {2: "T"}}).refused(message)
        for factor, message in (
            (1.4, "rounds the factor 1.4: of 45 elements PyTorch makes 62, where 7/5 of them are 63"),
            (3.14159265, "the factor 3.14159265 is not a short fraction"),
        )
    ),
    # 1.25 times 3 elements are 3, which PyTorch copies; in pictures of more than 128 rows and columns it does not
    *(
        to(f"{mode}, times {factor} of few elements, {kind}", shape, scale_factor=factor, mode=mode).dynamic(axes)
        for mode, shape in (
            ("nearest", (2, 3, 3, 2)),
            ("bilinear", (2, 3, 3, 2)),
            ("nearest", (2, 3, 3, 120)),
            ("linear", (2, 3, 3)),
            ("trilinear", (2, 3, 3, 2, 2)),
            ("nearest", (2, 1, 3, 2, 2)),
        )
        for factor in (1.25, 2.25)
        for kind, axes in ((f"{len(shape)} axes, {shape[-1]}", {}), (f"{len(shape)} axes, {shape[-1]}, dynamic", SPACE))
    ),
    to("nearest 3d", SOLID, size=(5, 9, 3)),
    to("nearest-exact 1d", LINE, size=11, mode="nearest-exact"),
    to("nearest-exact 2d", PLANE, size=(11, 3), mode="nearest-exact").dynamic(SPACE),
    to("nearest-exact 3d", SOLID, size=(5, 9, 3), mode="nearest-exact"),
    to("linear", LINE, size=11, mode="linear"),
    to("linear, corners", LINE, size=11, mode="linear", align_corners=True),
    to("linear, times 2", LINE, scale_factor=2, mode="linear").dynamic(SPACE),
    to("linear, corners, times 2", LINE, scale_factor=2, mode="linear", align_corners=True).dynamic(SPACE),
    to("bilinear", PLANE, size=(11, 3), mode="bilinear"),
    to("bilinear, factors", PLANE, scale_factor=(2, 3), mode="bilinear").dynamic(SPACE),
    to("bilinear, fraction", PLANE, scale_factor=1.3, mode="bilinear"),
    to("bilinear, corners, to 1", PLANE, size=(11, 1), mode="bilinear", align_corners=True),
    to("trilinear", SOLID, size=(5, 9, 3), mode="trilinear"),
    to("bicubic", PLANE, size=(11, 3), mode="bicubic"),
    to("bicubic, corners", PLANE, size=(11, 3), mode="bicubic", align_corners=True),
    to("bicubic, times 2", PLANE, scale_factor=2, mode="bicubic").dynamic(SPACE),
    to("bilinear, smoothed", (2, 3, 17, 15), size=(11, 3), mode="bilinear", antialias=True),
    to("bicubic, smoothed", (2, 3, 17, 15), size=(7, 23), mode="bicubic", antialias=True),
    *(
        to(f"{mode}, smoothed, dynamic to {size}", (2, 3, 7, 5), size=size, mode=mode, antialias=True).dynamic(SPACE)
        for mode in ("bilinear", "bicubic")
        for size in ((3, 9), (11, 2))
    ),
    case(
        "bilinear, smoothed by a factor",
        lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True),
        randn(2, 3, 8, 6),
    ).dynamic(SPACE),
    case(
        "bicubic, smoothed, corners",
        lambda x: F.interpolate(x, size=(4, 3), mode="bicubic", antialias=True, align_corners=True),
        randn(2, 3, 8, 6),
    ).dynamic(SPACE),
    # PyTorch repeats the first row of an antialiased column: no smoothed width of 1
    *(
        case(
            f"{mode}{', smoothed' if smoothed else ''}, corners, to half of a dynamic size",
            lambda x, mode=mode, smoothed=smoothed: F.interpolate(
                x, size=(x.shape[2] // 2 + 1, x.shape[3] // 2), mode=mode, align_corners=True, antialias=smoothed
            ),
            randn(2, 3, 8, 10),
        ).dynamic({0: {2: "H"} if smoothed else {2: "H", 3: "W"}})
        for mode, smoothed in (("bilinear", False), ("bicubic", False), ("bilinear", True), ("bicubic", True))
    ),
    # the engine left a `Dummy` operator in the second
    case("linear, beside the same of two transposes that cancel", resized_twice, randn(2, 7, 4)).dynamic({0: {1: "T"}}),
    case("nearest of uint8", F.interpolate, randint(0, 256, *PLANE, dtype=torch.uint8), (11, 3)),
    case(
        "bilinear of uint8", F.interpolate, randint(0, 256, *PLANE, dtype=torch.uint8), (11, 3), mode="bilinear"
    ).refused("fixed point"),
    case("upsample_nearest1d", aten.upsample_nearest1d, randn(*LINE), [5], 0.8),
    case("upsample_nearest2d", aten.upsample_nearest2d, randn(*PLANE), [5, 6], None, 1.3),
    case("upsample_nearest3d", aten.upsample_nearest3d, randn(*SOLID), [5, 6, 3]),
    case("_upsample_nearest_exact1d", aten._upsample_nearest_exact1d, randn(*LINE), [5], 0.8),
    case("_upsample_nearest_exact2d", aten._upsample_nearest_exact2d, randn(*PLANE), [5, 6]),
    case("_upsample_nearest_exact3d", aten._upsample_nearest_exact3d, randn(*SOLID), [5, 6, 3]),
    case("upsample_linear1d", aten.upsample_linear1d, randn(*LINE), [5], True),
    case("upsample_bilinear2d", aten.upsample_bilinear2d, randn(*PLANE), [5, 6], False, 0.8, 1.3),
    case("upsample_trilinear3d", aten.upsample_trilinear3d, randn(*SOLID), [5, 6, 3], False),
    case("upsample_bicubic2d", aten.upsample_bicubic2d, randn(*PLANE), [5, 6], False),
    case("_upsample_bilinear2d_aa", aten._upsample_bilinear2d_aa, randn(*PLANE), [5, 2], False),
    case("_upsample_bicubic2d_aa", aten._upsample_bicubic2d_aa, randn(*PLANE), [5, 2], True),
]
