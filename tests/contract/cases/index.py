"""Reading by index, also from the end."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.contract.cases import bools, build, case, randint, randn, tensor

aten = torch.ops.aten
i32 = torch.int32
BATCH = {0: {0: "B"}}
X, V = randn(3, 4, 5), randn(3, 5)
POSITIONS = torch.arange(35.0).reshape(7, 5).sin()

TIME = {0: {1: "T"}}


def written(x: torch.Tensor, at: Any, value: Any) -> torch.Tensor:
    """A copy of `x` with `value` at an index."""
    copy = x.clone()
    copy[at] = value
    return copy


def write(x: torch.Tensor, *index: Any, value: Any = -7.5) -> torch.Tensor:
    """Return the tensor with a value at an index."""
    x = x.clone()
    x[index] = value
    return x


ALL = slice(None)
TWO = torch.tensor([2, 0])


CASES = [
    *(
        case(f"written {name}", function, randn(3, 7, 4)).dynamic({0: {1: "T"}})
        for name, function in {
            "in the middle": lambda x: write(x, ALL, x.shape[1] // 2),
            "in the middle, with a row": lambda x: write(x, ALL, x.shape[1] // 2, value=2 * x[:, 0]),
            "in the middle, a part": lambda x: write(x, ..., x.shape[1] // 2, slice(1, 3)),
            "in the middle, one element": lambda x: write(x, 1, x.shape[1] // 2, 3),
            "at the last place": lambda x: write(x, ALL, x.shape[1] - 1, value=2 * x[:, 0]),
            "from the end": lambda x: write(x, ALL, -(x.shape[1] // 2) - 1),
            "in the middle, at an index": lambda x: write(x, ALL, x.shape[1] // 2, TWO),
            "in the middle, after an index": lambda x: write(x, TWO, x.shape[1] // 2, value=3 * x[:2, 0]),
            "in the middle, with a new axis": lambda x: write(x, ALL, None, x.shape[1] // 2, value=2 * x[:, :1]),
            "at two places": lambda x: write(write(x, ALL, x.shape[1] // 2, value=1), ALL, x.shape[1] - 1, value=2),
        }.items()
    ),
    case("read in the middle, at an index", lambda x: x[TWO, x.shape[1] // 2], randn(3, 7, 4)).dynamic({0: {1: "T"}}),
    *(
        case(f"index by an input without axes, {i}", lambda x, i: (x[:, i], x[i], x[..., i, None]), X, tensor(i))
        for i in (0, 2, -1)
    ),
    case("index by one without axes, dynamic", lambda x, i: x[:, i] + x.sum(1), X, tensor(-1)).dynamic(TIME),
    case("index by two without axes", lambda x, i, j: x[i, :, j], X, tensor(1, i32), tensor(-2)).dynamic(TIME),
    case("index by one without axes and a slice", lambda x, i: x[i, 1:, :2], X, tensor(2)),
    case("index by one with axes and one without", lambda x, i, j: (x[i, j], x[:, i, j]), X, tensor(1), tensor([2, 0])),
    case("index by a computed number", lambda x: x[:, x.sum((0, 2)).argmax()], X).dynamic(TIME),
    case("index of a weight by one without axes", lambda x, i: x + POSITIONS[i], X, tensor(3)).dynamic(TIME),
    case("select by one without axes", lambda x, i: x.select(2, i) + torch.select(x, 2, i + 1), X, tensor(3)),
    case("index_select by one without axes", lambda x, i: x.index_select(1, i[None]), X, tensor(0)).dynamic(TIME),
    *(
        case(f"write at an input without axes, {i}", lambda x, i, v: written(x, (slice(None), i), v), X, tensor(i), V)
        for i in (0, 2, -1)
    ),
    case("write a number there", lambda x, i: written(x, (..., i), 7.5), X, tensor(1)).dynamic(TIME),
    case(
        "write at two without axes",
        lambda x, i, j, v: written(x, (i, slice(1, None), j), v),
        X,
        tensor(1),
        tensor(-2),
        randn(3),
    ),
    case("embedding", build(nn.Embedding, 7, 4, padding_idx=0), randint(0, 7, 2, 5)).dynamic({0: {0: "B", 1: "T"}}),
    case("embedding by int32", build(nn.Embedding, 7, 4), randint(0, 7, 2, 5, dtype=torch.int32)),
    case("index_select", lambda x, i: x.index_select(1, i), randn(3, 4, 5), randint(0, 4, 6)).dynamic(
        {0: {0: "B"}, 1: {0: "K"}}
    ),
    case("index_select of a number", lambda x, i: x.index_select(0, i), randn(), tensor([0])),
    case("gather", lambda x, i: x.gather(1, i), randn(3, 4, 5), randint(0, 4, 3, 6, 5)),
    case("gather, fewer", lambda x, i: x.gather(-1, i), randn(3, 4, 5), randint(0, 5, 2, 3, 6)),
    case("take_along_dim", lambda x, i: x.take_along_dim(i, 1), randn(3, 4, 5), randint(-4, 4, 1, 6, 5)),
    case("take_along_dim, flat", lambda x, i: x.take_along_dim(i), randn(3, 4), randint(0, 12, 6)),
    case("take_along_dim, aten", aten.take_along_dim, randn(3, 4), randint(0, 4, 3, 2), 1),
    case("take", torch.take, randn(3, 4), randint(-12, 12, 2, 3)),
    case("index behind an axis", lambda x, i: x[:, i], randn(3, 4, 5), randint(-4, 4, 2, 3)).dynamic(BATCH),
    case("index by a number", lambda x: x[:, torch.tensor(-1)], randn(3, 4, 5)).dynamic(BATCH),
    case("index by two", lambda x, i, j: x[i, j], randn(3, 4, 5), randint(-3, 3, 6), randint(-4, 4, 2, 6)),
    case("index by two, apart", lambda x, i, j: x[i, :, j], randn(3, 4, 5), randint(-3, 3, 6), randint(-5, 5, 2, 6)),
    case("index by two, behind", lambda x, i, j: x[:, i, j], randn(3, 4, 5), randint(-4, 4, 6), randint(-5, 5, 2, 1)),
    case("index by a list", lambda x: x[:, [0, -1, 2]], randn(3, 4, 5)).dynamic(BATCH),
    case("index of a dynamic axis", lambda x, i: x[:, i], randn(3, 4, 5), tensor([0, 0, -1])).dynamic({0: {1: "T"}}),
    case("_unsafe_index", lambda x, i: aten._unsafe_index(x, [None, i]), randn(3, 4), randint(0, 4, 6)),
    case("index by a mask", lambda x, m: x[m], randn(3, 4), bools(3, 4)).refused("depends on its data"),
    case("one_hot", F.one_hot, randint(0, 5, 2, 3), 5).dynamic(BATCH),
    case(
        "embedding_bag, max of infinities",
        lambda w, i, o: F.embedding_bag(i, w, o, mode="max"),
        tensor([[1.5, -math.inf], [-math.inf, -math.inf], [-2.0, 3.0]]),
        tensor([1, 0, 1, 1, 2]),
        tensor([0, 1, 3, 5]),
    ),
    case("embedding_bag, sum", build(nn.EmbeddingBag, 7, 4, mode="sum"), randint(0, 7, 3, 5)),
    *(
        case(
            f"embedding_bag, {mode} over dynamic bags", build(nn.EmbeddingBag, 7, 4, mode=mode), randint(0, 7, 3, 5)
        ).dynamic({0: axes})
        for mode, axes in {"sum": {0: "B", 1: "T"}, "mean": {1: "T"}, "max": {0: "B"}}.items()
    ),
    case("embedding_bag, mean", build(nn.EmbeddingBag, 7, 4), randint(0, 7, 9), tensor([0, 2, 2, 6])),
    case(
        "embedding_bag, max, padded",
        build(nn.EmbeddingBag, 7, 4, mode="max", include_last_offset=True, padding_idx=3),
        randint(0, 7, 9),
        tensor([0, 2, 2, 6, 9]),
    ),
    case(
        "embedding_bag, padded from the end",
        lambda i, o, w: F.embedding_bag(i, w, o, mode="mean", padding_idx=-3),
        randint(0, 7, 9),
        tensor([0, 2, 2, 6]),
        randn(7, 4),
    ),
    case(
        "embedding_bag, weighted",
        F.embedding_bag,
        randint(0, 7, 3, 5),
        randn(7, 4),
        mode="sum",
        per_sample_weights=randn(3, 5),
    ),
    case(
        "embedding_bag of the plain overload",
        lambda w, i, o: aten.embedding_bag.default(w, i, o)[0],
        randn(7, 4),
        randint(0, 7, 9),
        tensor([0, 4]),
    ),
    case(
        "_embedding_bag", lambda w, i, o: aten._embedding_bag(w, i, o)[0], randn(7, 4), randint(0, 7, 9), tensor([0, 4])
    ),
]
