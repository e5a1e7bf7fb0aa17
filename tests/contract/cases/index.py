"""Reading by index, also from the end."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.contract.cases import bools, build, case, randint, randn, tensor

aten = torch.ops.aten
BATCH = {0: {0: "B"}}

CASES = [
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
    case("embedding_bag, sum", build(nn.EmbeddingBag, 7, 4, mode="sum"), randint(0, 7, 3, 5)),
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
