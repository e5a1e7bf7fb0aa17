"""Writing by index, with places that are hit more than once wherever the result is then defined."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from tests.contract.cases import bools, case, randint, randn, tensor, weight

aten = torch.ops.aten
REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
ONCE = tensor([[4, 0, 2, 5], [1, 3, 0, 2]])


def written(x: Tensor, index: Any, value: Any) -> Tensor:
    out = x.clone()
    out[index] = value
    return out


TWICE = torch.tensor([[0, 1, 2, 3], [0, 1, 1, 2]])
CASES = [
    case("index_put of booleans", lambda x, y: x.index_put((torch.tensor([0, 2]),), y), bools(5, 4), bools(2, 4)),
    case(
        "index_put adds booleans", lambda x, y: x.index_put((torch.tensor([2, 2]),), y, True), bools(5, 4), bools(2, 4)
    ),
    case(
        "scatter_reduce of booleans, amin", lambda x, y: x.scatter_reduce(0, TWICE, y, "amin"), bools(5, 4), bools(2, 4)
    ),
    case(
        "scatter_reduce of booleans, sum", lambda x, y: x.scatter_reduce(0, TWICE, y, "sum"), bools(5, 4), bools(2, 4)
    ),
    case(
        "index_add of large integers",
        lambda x, i, s: x.index_add(0, i, s),
        tensor([[1, 2], [3, 4]]),
        tensor([1, 1]),
        tensor([[2**40 + 7, 3], [5, 2**33]]),
    ),
    case("scatter", lambda x, i, s: x.scatter(1, i, s), randn(3, 6), ONCE, randn(3, 5)),
    case("scatter a number", lambda x, i: x.scatter(-1, i, 2.5), randn(3, 6, 5), randint(0, 5, 3, 6, 2)),
    case(
        "scatter a number over the batch", lambda x, i: x.scatter(1, i, 1.0), randn(2, 6), randint(0, 6, 2, 3)
    ).dynamic({0: {0: "B"}, 1: {0: "B"}}),
    case("scatter_add", lambda x, i, s: x.scatter_add(1, i, s), randn(3, 6, 5), randint(0, 6, 2, 9, 4), randn(3, 9, 5)),
    case(
        "scatter, add", lambda x, i, s: x.scatter(1, i, s, reduce="add"), randn(3, 6), randint(0, 6, 3, 9), randn(3, 9)
    ),
    case("scatter, multiply", lambda x, i: x.scatter(1, i, 2.0, reduce="multiply"), randn(3, 6), randint(0, 6, 3, 9)),
    *(
        case(
            f"scatter_reduce {name}{'' if keep else ', afresh'}",
            lambda x, i, s, name=name, keep=keep: x.scatter_reduce(1, i, s, name, include_self=keep),
            randn(3, 6, 5),
            randint(0, 6, 2, 9, 4),
            randn(3, 9, 5),
        )
        for name in REDUCTIONS
        for keep in (True, False)
    ),
    *(
        case(
            f"scatter_reduce {name} of infinities, afresh",
            lambda x, s, name=name: x.scatter_reduce(0, torch.tensor([0, 2, 2, 3, 3]), s, name, include_self=False),
            randn(6),
            tensor([-math.inf, -math.inf, -math.inf, math.inf, math.inf]),
        )
        for name in ("amax", "amin")
    ),
    case(
        "scatter_reduce of integers",
        lambda x, i, s: x.scatter_reduce(1, i, s, "mean"),
        randint(-9, 9, 3, 6),
        randint(0, 6, 2, 9),
        randint(-30, 30, 3, 9),
    ),
    case(
        "index_add", lambda x, i, s: x.index_add(1, i, s, alpha=1.5), randn(3, 6, 5), randint(0, 6, 9), randn(3, 9, 5)
    ).dynamic({0: {0: "B"}, 2: {0: "B"}}),
    case("index_copy", lambda x, i, s: x.index_copy(1, i, s), randn(3, 6, 5), tensor([4, 0, 2]), randn(3, 3, 5)),
    case("index_fill", lambda x, i: x.index_fill(1, i, -1.0), randn(3, 6, 5), tensor([4, 0, 2])).dynamic({0: {0: "B"}}),
    case("index_reduce", lambda x, i, s: x.index_reduce(1, i, s, "prod"), randn(3, 6), randint(0, 6, 9), randn(3, 9)),
    case("index_put", lambda x, i, v: x.index_put((i,), v), randn(6, 4), tensor([4, 0, -1]), randn(3, 4)),
    case(
        "index_put, accumulated",
        lambda x, i, j, v: x.index_put((i, j), v, accumulate=True),
        randn(6, 4, 3),
        randint(0, 6, 8),
        randint(-4, 4, 8),
        randn(8, 3),
    ),
    case(
        "_unsafe_index_put",
        lambda x, i, v: aten._unsafe_index_put(x, [None, i], v),
        randn(2, 6),
        tensor([4, 0]),
        randn(2, 2),
    ),
    case(
        "written behind an axis",
        lambda x, i, v: written(x, (slice(None), i), v),
        randn(2, 6, 4),
        tensor([4, 0, -1]),
        randn(3, 4),
    ).dynamic({0: {0: "B"}}),
    case("written by a mask", lambda x, m: written(x, m, -7.0), randn(2, 6), bools(2, 6)).dynamic(
        {0: {0: "B"}, 1: {0: "B"}}
    ),
    case(
        "written by a mask of rows", lambda x, m, v: written(x, (slice(None), m), v), randn(5, 6, 3), bools(6), randn(3)
    ),
    case(
        "written by a mask, in order",
        lambda x, m, v: written(x, m, v),
        randn(4),
        weight(tensor([True, False, True, True])),
        randn(3),
    ).refused("depends on the data"),
    case("masked_scatter of dynamic axes", torch.masked_scatter, randn(3, 4), bools(3, 4), randn(99)).dynamic(
        {0: {0: "B", 1: "T"}, 1: {0: "B", 1: "T"}, 2: {0: "N"}}
    ),
    case("masked_scatter of many", torch.masked_scatter, randn(70, 50), bools(70, 50), randn(3500)),
    case("masked_scatter", torch.masked_scatter, randn(4), bools(3, 4), randn(20)),
    case("put", torch.put, randn(3, 4), tensor([[1, -2], [5, 0]]), randn(2, 2)),
    case("put, accumulated", torch.put, randn(3, 4), tensor([[1, -2], [1, 0]]), randn(2, 2), accumulate=True),
]
