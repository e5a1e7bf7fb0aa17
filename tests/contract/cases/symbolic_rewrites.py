"""Functions whose C++ code specialises on concrete sizes, over dynamic axes."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.contract.cases import case, randint, randn, uniform

BT = {0: {0: "B", 1: "T"}}
TIME = {0: {1: "T"}}
DIMS = torch.tensor([0.5, 1.5, 2.0, 4.0])

TURNS = torch.tensor([[1.0], [-2.0], [0.5]])


def grid(x: torch.Tensor, *size: int, align_corners: bool) -> torch.Tensor:
    """Two grids, each transformed by other elements of the input."""
    rank = len(size)
    theta = torch.stack([x[0], x.sum(0)])[:, None, : rank + 1] * TURNS[:rank]
    return F.affine_grid(theta, (2, 1, *size), align_corners=align_corners)


def write_into_second(x: torch.Tensor) -> torch.Tensor:
    x[1].fill_diagonal_(7.0)
    return x


CASES = [
    case("fftfreq", lambda x: torch.fft.fftfreq(x.shape[1]) + x, randn(2, 7)).dynamic(TIME),
    case("fftfreq of a rate", lambda x: torch.fft.fftfreq(d=1 / 16000, n=2 * x.shape[1] + 1), randn(2, 7))
    .dynamic(TIME),
    case("fftfreq in double", lambda x: torch.fft.fftfreq(x.shape[1], 0.3, dtype=torch.float64).float(), randn(2, 7))
    .dynamic(TIME),
    case("rfftfreq", lambda x: torch.fft.rfftfreq(x.shape[1], 0.25) * x[0, 0], randn(2, 7)).dynamic(TIME),
    *(
        case(f"affine_grid {'to the corners' if corners else 'inside'} of {rank} axes",
             lambda x, rank=rank, corners=corners: grid(x, *(3, 2 * x.shape[0], x.shape[0])[-rank:],
                                                        align_corners=corners), randn(7, 5))
        .dynamic({0: {0: "T"}})
        for rank in (2, 3) for corners in (True, False)
    ),
    case("one_hot of a dynamic size", lambda x: F.one_hot(x.argmax(1), x.shape[1]), randn(2, 7, 3)).dynamic(TIME),
    *(
        case(f"fill_diagonal_ of {name}", function, randn(7, 3)).dynamic({0: {0: "T"}})
        for name, function in {
            "a square": lambda x: (x @ x.mT).fill_diagonal_(-2.5),
            "a tall matrix": lambda x: x.clone().fill_diagonal_(2.5),
            "a tall matrix, again and again": lambda x: x.clone().fill_diagonal_(2.5, wrap=True),
            "a wide matrix": lambda x: x.mT.clone().fill_diagonal_(2.5, wrap=True),
            "integers": lambda x: (9 * x).long().fill_diagonal_(-2.5),
            "three axes": lambda x: (x @ x.mT).expand(x.shape[0], -1, -1).clone().fill_diagonal_(0),
            "a view": lambda x: write_into_second(torch.stack([x @ x.mT, x @ x.mT])),
        }.items()
    ),
    case("new_tensor", lambda x: x / x.new_tensor([[x.shape[1], 2.5], [-x.shape[1] / 2, 3]])[:, :1], randn(2, 7))
    .dynamic(TIME),
    case("new_tensor of integers", lambda x: x // x.new_tensor([x.shape[0], 2 * x.shape[0] - 1, -2.5]),
         randint(-9, 9, 7, 3)).dynamic({0: {0: "T"}}),
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
    case("corrcoef of integers", torch.corrcoef, randint(-9, 9, 3, 5)).dynamic({0: {1: "N"}}).keeping_nan(),
    case("cov of one variable", lambda x: (torch.cov(x), torch.cov(x, correction=0)), randn(7)).dynamic({0: {0: "T"}}),
    case("cov with weights", lambda x, n, w: torch.cov(x, fweights=n, aweights=w), randn(3, 7), randint(1, 4, 7),
         uniform(0.5, 2, 7)).dynamic({0: {1: "T"}, 1: {0: "T"}, 2: {0: "T"}}),
    case("corrcoef", torch.corrcoef, randn(3, 7)).dynamic(TIME).keeping_nan(),
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
