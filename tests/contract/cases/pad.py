"""Padding: amounts differ on all sides."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.contract.cases import bools, build, case, randint, randn

aten = torch.ops.aten
SPACE = {0: {0: "B", 2: "T"}}

CASES = [
    case("pad", F.pad, randn(2, 3, 4, 5), (1, 2, 0, 3), value=1.5).dynamic(SPACE),
    case("constant_pad_nd", aten.constant_pad_nd, randn(2, 3), [1, 2]),
    case("pad and cut", F.pad, randn(2, 3, 4, 5), (-1, 2, 3, -2)).dynamic({0: {0: "B", 3: "T"}}),
    case("pad with infinity", F.pad, randn(2, 3, 5), (1, 2), value=-math.inf).dynamic(SPACE),
    case("pad of integers", F.pad, randint(-9, 9, 2, 3), (1, 2), value=2**30 + 1).dynamic({0: {0: "B"}}),
    case("pad of bool", F.pad, bools(2, 3), (1, 2), value=True),
    case("pad of float64", F.pad, randn(2, 3, dtype=torch.float64), (1, 2), value=0.1),
    case("pad of float16", F.pad, randn(2, 3, dtype=torch.float16), (1, 2), value=0.1),
    case(
        "pad to a multiple", lambda x: F.pad(x, (0, (4 - x.shape[1] % 4) % 4)).unflatten(1, (-1, 4)), randn(2, 5)
    ).dynamic({0: {1: "T"}}),
    case(
        "pad to one block",
        lambda x: torch.cat([F.pad(x, (0, -x.shape[2] % 8)) + torch.arange(8.0), torch.ones(2, 1, 8)], 1),
        randn(2, 3, 5),
    ).dynamic({0: {2: "T"}}),
    case("pad by a dynamic size", lambda x: F.pad(x, (x.shape[0], 1)), randn(2, 3)).dynamic({0: {0: "B"}}),
    case("pad up to a size, or cut to it", lambda x: F.pad(x, (0, 4 - x.shape[1])), randn(2, 3)).dynamic({0: {1: "T"}}),
    case("pad in front, or cut there", lambda x: F.pad(x, (0, 0, 5 - x.shape[1], 1)) * 2, randn(2, 4, 3)).dynamic(
        {0: {1: "T"}}
    ),
    case("pad to the size of another", lambda x, y: F.pad(x, (0, y.shape[0] - x.shape[0])), randn(4), randn(6)).dynamic(
        {0: {0: "T"}, 1: {0: "S"}}
    ),
    case("reflection_pad1d", build(nn.ReflectionPad1d, (2, 1)), randn(2, 3, 5)).dynamic(SPACE),
    case("reflection_pad2d", build(nn.ReflectionPad2d, (2, 1, 3, 0)), randn(2, 3, 5, 6)).dynamic(SPACE),
    case("reflection_pad3d", build(nn.ReflectionPad3d, (2, 1, 3, 0, 1, 1)), randn(2, 3, 5, 6, 4)),
    case("reflection_pad1d, aten", aten.reflection_pad1d, randn(2, 3, 5), [2, 1]),
    case("reflection_pad2d, aten", aten.reflection_pad2d, randn(2, 5, 6), [2, 1, 3, 0]),
    case("reflection_pad3d, aten", aten.reflection_pad3d, randn(2, 5, 6, 4), [2, 1, 3, 0, 1, 1]),
    case("replication_pad1d", build(nn.ReplicationPad1d, (2, 1)), randn(2, 3, 5)).dynamic(SPACE),
    case("replication_pad2d", build(nn.ReplicationPad2d, (2, 1, 3, 0)), randn(2, 3, 5, 6)).dynamic(SPACE),
    case("replication_pad3d", build(nn.ReplicationPad3d, (2, 1, 3, 0, -1, 1)), randn(2, 3, 5, 6, 4)),
    case("replication_pad1d, aten", aten.replication_pad1d, randn(2, 3, 5), [2, 1]),
    case("replication_pad2d, aten", aten.replication_pad2d, randn(2, 5, 6), [2, 1, 3, 0]),
    case("replication_pad3d, aten", aten.replication_pad3d, randn(2, 5, 6, 4), [2, 1, 3, 0, 1, 1]),
    *(
        case(
            f"{mode} to a multiple",
            lambda x, mode=mode: F.pad(x, (-x.shape[2] % 3, -x.shape[2] % 4), mode),
            randn(2, 3, 5),
        ).dynamic({0: {0: "B", 2: "T"}})
        for mode in ("reflect", "replicate")
    ),
    case("replicate beyond a cut", F.pad, randn(2, 3, 4), (-4, 5), mode="replicate"),
    case("replicate integers", F.pad, randint(-9, 9, 2, 3, 4), (2, 1), mode="replicate"),
    case("circular", build(nn.CircularPad2d, (2, 1, 3, 0)), randn(2, 3, 5, 6)).dynamic({0: {0: "B", 3: "T"}}),
    case("circular, cut", F.pad, randn(2, 3, 5, 6), (-1, 2, 1, -2), mode="circular"),
    case("_pad_circular", aten._pad_circular, randn(2, 3, 5), [3, 4]),
]
