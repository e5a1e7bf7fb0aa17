"""Order, with equal elements and NaN."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tests.contract.cases import bools, case, randint, randn, tensor, weight

LOST = tensor([[1.0, math.nan, -2.0, math.nan, 0.0], [3.0, 3.0, math.nan, -math.inf, math.inf]])
EDGES = weight(tensor([-1.0, -0.2, 0.3, 1.1]))


def _with_lost(x: Tensor, at: Tensor) -> Tensor:
    """Return `x` with NaN, the largest number and both infinities where `at` says so."""
    x = x.masked_fill(at == 0, math.nan).masked_fill(at == 1, math.inf)
    return x.masked_fill(at == 2, torch.finfo(torch.float32).max).masked_fill(at == -1, -math.inf)


CASES = [
    case("topk", torch.topk, randn(3, 6, 4), 3, 1).dynamic({0: {0: "B"}}),
    case("topk, smallest", torch.topk, randn(3, 6), 3, -1, False),
    case("topk of a dynamic axis", torch.topk, randn(3, 6), 1).dynamic({0: {1: "T"}}),
    case("topk of a long axis", torch.topk, randn(3, 300), 5).dynamic({0: {0: "B"}}),
    case("topk of a number", torch.topk, randn(), 1),
    case("sort", torch.sort, randn(3, 6, 4), 1, True).dynamic({0: {0: "B", 1: "T"}}),
    case("sort a long axis", torch.sort, randn(200, 3), 0),
    case("sort a long axis of three", torch.sort, randn(3, 150, 4), 1),
    case("sort NaN", torch.sort, LOST),
    case("sort NaN, descending", torch.sort, LOST, descending=True),
    case(
        "sort a long axis with NaN",
        lambda x, at: _with_lost(x, at).sort(stable=True),
        randn(2, 200),
        randint(0, 4, 2, 200),
    ),
    case(
        "sort a long axis with NaN, descending",
        lambda x, at: _with_lost(x, at).sort(stable=True, descending=True),
        randn(2, 200),
        randint(0, 4, 2, 200),
    ),
    case(
        "topk of a long axis with NaN",
        lambda x, at: _with_lost(x, at).topk(60)[0],
        randn(2, 200),
        randint(0, 9, 2, 200),
    ),
    case("sort equal ones", torch.sort, randint(-3, 3, 3, 4, 9), dim=-1, stable=True),
    case("argsort", torch.argsort, randn(5, 3), 0),
    case("argsort, stable", torch.argsort, randint(-3, 3, 5, 9), dim=1, stable=True),
    case("msort", torch.msort, randn(5, 3)),
    case("kthvalue", torch.kthvalue, randn(5, 3), 2, 0),
    case("bucketize", torch.bucketize, randn(5, 3), EDGES, right=True).dynamic({0: {0: "B"}}),
    case("bucketize integers", torch.bucketize, randint(-3, 3, 5), EDGES, out_int32=True),
    case("searchsorted", torch.searchsorted, tensor([[-2.0, 0.1, 0.4], [0.0, 0.0, 1.0]]), randn(2, 4)),
    case("searchsorted from the right", torch.searchsorted, tensor([1, 3, 3, 5]), randint(0, 7, 3, 4), side="right"),
    case(
        "searchsorted by another order", torch.searchsorted, tensor([3.0, 1.0, 2.0]), randn(4), sorter=tensor([1, 2, 0])
    ),
    case("sort of many integers", lambda x: torch.sort(x, stable=True), randint(-50, 50, 2, 200)),
    case("argsort of many booleans", lambda x: torch.argsort(x, stable=True), bools(300)),
]
