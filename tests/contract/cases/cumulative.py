"""Running sums and their like."""

from __future__ import annotations

import math

import torch

from tests.contract.cases import case, randint, randn, tensor, uniform

BT = {0: {0: "B", 1: "T"}}
ROWS = [[-math.inf, -math.inf, 1.0, math.inf, 0.5], [math.inf, math.inf, 3.0, math.nan, -math.inf]]
CORNERS, MANY_CORNERS = tensor(ROWS), tensor([row * 20 for row in ROWS])
KINDS = "cumsum cumprod logcumsumexp cummax cummin".split()

CASES = [
    *(case(name, getattr(torch, name), randn(2, 5, 3), 1) for name in KINDS),
    *(case(f"{name} of the last axis", getattr(torch, name), randn(4, 5), -1) for name in KINDS),
    *(case(f"{name} dynamic", getattr(torch, name), randn(2, 5, 3), 1).dynamic(BT) for name in KINDS),
    *(case(f"{name} of rank 0", getattr(torch, name), randn(), 0) for name in KINDS),
    *(case(f"{n} of integers", getattr(torch, n), randint(-3, 4, 3, 6), 1) for n in KINDS if n != "logcumsumexp"),
    *(case(f"{n} of float16", getattr(torch, n), randn(3, 6, dtype=torch.float16), 1) for n in KINDS),
    case("cumsum long", torch.cumsum, randn(2, 300), 1),
    case("cumsum of closed gates", lambda x: (torch.sigmoid(x - 50) * -60).cumsum(1).exp(), randn(2, 60)),
    case("cumsum long of integers", torch.cumsum, randint(-9, 9, 300, 2), 0),
    case("cumsum of large integers", torch.cumsum, tensor([[2**40 + 7, 3], [5, -(2**33)]]), 0),
    case("cumprod long", torch.cumprod, uniform(0.9, 1.1, 2, 100), 1),
    case("cumprod long of integers", torch.cumprod, randint(-3, 4, 2, 100), 1),
    case("cumsum dtype", lambda x: x.cumsum(1, dtype=torch.float64), randint(-9, 9, 2, 5)),
    case("cumsum of bool", lambda x: (x > 0).cumsum(1), randn(2, 5)).dynamic(BT),
    case("cummax ties", torch.cummax, randint(0, 3, 4, 9), 1),
    *(case(f"{n} of corners", getattr(torch, n), CORNERS, 1) for n in ("cummax", "cummin")),
    *(case(f"{n} of many corners", getattr(torch, n), MANY_CORNERS, 1) for n in ("cummax", "cummin")),
    *(case(f"{n} of corners, dynamic", getattr(torch, n), CORNERS, 1).dynamic(BT) for n in ("cummax", "cummin")),
    case("cummin ties", torch.cummin, randint(0, 3, 4, 9), 1),
]
