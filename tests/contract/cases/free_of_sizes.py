"""Functions whose C++ code asks for the numbers of sizes, over dynamic axes."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.contract.cases import case, randint, randn, uniform

BT = {0: {0: "B", 1: "T"}}
TIME = {0: {1: "T"}}
DIMS = torch.tensor([0.5, 1.5, 2.0, 4.0])

CASES = [
    case("kron", torch.kron, randn(2, 3), randn(4, 5)).dynamic({0: {0: "B", 1: "T"}, 1: {0: "C", 1: "S"}}),
    case("kron of other ranks", lambda x, y: (torch.kron(x, y), y.kron(x)), randn(3), randn(4, 5)).dynamic(
        {0: {0: "T"}, 1: {0: "B"}}
    ),
    case("multi_dot", lambda a, b, c: torch.linalg.multi_dot([a, b, c]), randn(2, 3), randn(3, 4), randn(4)).dynamic(
        {0: {0: "B", 1: "T"}, 1: {0: "T"}}
    ),
    case("_chunk_cat", lambda x, y: torch._chunk_cat([x, y], 1, 5), randn(2, 3), randn(2, 13)).dynamic(
        {0: {0: "B", 1: "T"}, 1: {0: "B", 1: "S"}}
    ),
    case("_chunk_cat in front of other axes", lambda x: torch._chunk_cat([x, -x], 0, 2), randn(3, 4)).dynamic(BT),
    case("bilinear", F.bilinear, randn(2, 3, 4), randn(2, 3, 5), randn(6, 4, 5), randn(6)).dynamic(
        {0: {0: "B", 1: "T"}, 1: {0: "B", 1: "T"}}
    ),
    case("take_along_dim of dynamic axes", lambda x, i: x.take_along_dim(i, 1), randn(2, 5, 3), randint(-9, 9, 1, 4, 3))
    .dynamic({0: {0: "B", 1: "T"}}),
    case("gradient", lambda x: torch.gradient(x), randn(4, 5)).dynamic(BT),
    case("gradient of one axis", lambda x: torch.gradient(x, spacing=0.5, dim=1, edge_order=2), randn(2, 7)).dynamic(
        BT),
    case("gradient of uneven steps", lambda x: torch.gradient(x, spacing=(DIMS,), dim=0), randn(4, 3)),
    case("cov", torch.cov, randn(3, 7)).dynamic(TIME),
    case("cov of integers", torch.cov, randint(-9, 9, 3, 5)),
    case("corrcoef of integers", torch.corrcoef, randint(-9, 9, 3, 5)).dynamic({0: {1: "N"}}),
    case("cov of one variable", lambda x: (torch.cov(x), torch.cov(x, correction=0)), randn(7)).dynamic({0: {0: "T"}}),
    case("cov with weights", lambda x, n, w: torch.cov(x, fweights=n, aweights=w), randn(3, 7), randint(1, 4, 7),
         uniform(0.5, 2, 7)).dynamic({0: {1: "T"}, 1: {0: "T"}, 2: {0: "T"}}),
    case("corrcoef", torch.corrcoef, randn(3, 7)).dynamic(TIME),
    case("pdist", F.pdist, randn(4, 3)).dynamic({0: {0: "B", 1: "T"}}),
    case("pdist of the first norm", lambda x: torch.pdist(x, 1.0), randn(5, 3)).dynamic({0: {0: "B"}}),
    *(
        case(f"adaptive_max_pool3d to {size}", lambda x, size=size: F.adaptive_max_pool3d(x, size, return_indices=True),
             randn(2, 3, 4, 3, 5)).dynamic({0: {0: "B", 2: "D", 3: "H", 4: "W"}})
        for size in ((2, None, 3), 2)
    ),
    case("adaptive_max_pool3d of one sample", lambda x: F.adaptive_max_pool3d(x, (1, 2, None)), randn(3, 4, 3, 5))
    .dynamic({0: {1: "D", 3: "W"}}),
    case("gaussian_nll_loss", lambda x, y, v: F.gaussian_nll_loss(x, y, v, full=True), randn(3, 5), randn(3, 5),
         uniform(0, 2, 3)).dynamic({0: {1: "T"}, 1: {1: "T"}}),
]  # fmt: skip
