"""Products of vectors, powers of matrices."""

from __future__ import annotations

import torch

from tests.contract.cases import bools, case, randn

aten = torch.ops.aten

CASES = [
    case("inner of square matrices", torch.inner, randn(4, 4), randn(4, 4)),
    case("inner", torch.inner, randn(2, 3, 4), randn(5, 4)).dynamic({0: {0: "B"}}),
    case("inner with a number", torch.inner, randn(), randn(5, 4)),
    case("addr", torch.addr, randn(3, 4), randn(3), randn(4), beta=0.5, alpha=2),
    case("addr without self", torch.addr, randn(3, 4), randn(3), randn(4), beta=0),
    *(
        case(
            f"addr of booleans, beta {beta}, alpha {alpha}",
            torch.addr,
            bools(3, 4),
            bools(3),
            bools(4),
            beta=beta,
            alpha=alpha,
        )
        for beta, alpha in ((True, True), (False, True), (True, False))
    ),
    case("pdist", torch.pdist, randn(5, 4), 3.0),
    case("_pdist_forward", aten._pdist_forward, randn(5, 4), 1.0),
]
