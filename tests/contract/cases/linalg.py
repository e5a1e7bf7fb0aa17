"""Factors of matrices, and what is computed from them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.contract.cases import Case, case, randn

linalg, aten = torch.linalg, torch.ops.aten
A, BATCH, TALL, WIDE = randn(4, 4), randn(2, 4, 4), randn(5, 3), randn(3, 5)
B, VECTOR = randn(4, 2), randn(4)


def spread(a: Tensor) -> Tensor:
    """A matrix far from singular, so that rounding does not decide."""
    return a + 4 * torch.eye(a.shape[-1])


def positive(a: Tensor) -> Tensor:
    return a @ a.mT + torch.eye(a.shape[-1])


def of_spread(name: str, function: Any, *args: Any) -> Case:
    return case(name, lambda a, *rest: function(spread(a), *rest), *args)


CASES = [
    case("cholesky", lambda a: linalg.cholesky(positive(a)), BATCH),
    case("cholesky upper", lambda a: torch.cholesky(positive(a), upper=True), A),
    case("cholesky_ex", lambda a: linalg.cholesky_ex(positive(a)), A),
    case("cholesky_ex of a matrix without", lambda a: linalg.cholesky_ex(positive(a) - 9 * torch.eye(4)).info, A),
    case("cholesky_solve", lambda a, b: torch.cholesky_solve(b, linalg.cholesky(positive(a))), A, B),
    case("cholesky_inverse", lambda a: torch.cholesky_inverse(linalg.cholesky(positive(a)), upper=False), BATCH),
    case("cholesky of varying batch", lambda a: linalg.cholesky(positive(a)), BATCH).dynamic({0: {0: "N"}}),
    case("cholesky of varying size", lambda a: linalg.cholesky(positive(a)), A)
    .dynamic({0: {0: "N", 1: "N"}})
    .refused("fixed size"),
    of_spread("inv", linalg.inv, BATCH),
    of_spread("inv_ex", lambda a: linalg.inv_ex(a), A),
    of_spread("solve", linalg.solve, A, B),
    of_spread("solve a vector", linalg.solve, A, VECTOR),
    of_spread("solve from the right", lambda a, b: linalg.solve(a, b.mT, left=False), A, B),
    of_spread("solve of varying batch", linalg.solve, BATCH, B).dynamic({0: {0: "N"}}),
    of_spread("lu", linalg.lu, randn(3, 3)),
    case("lu of a tall matrix", linalg.lu, TALL),
    case("lu of a wide matrix", linalg.lu, WIDE),
    case("lu_factor", linalg.lu_factor, BATCH),
    case("lu_factor_ex of a singular matrix", lambda a: linalg.lu_factor_ex(a * torch.tensor([1.0, 0.0, 1.0])), TALL),
    case("lu_unpack", lambda a: torch.lu_unpack(*linalg.lu_factor(a)), TALL),
    of_spread("lu_solve", lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b), A, B),
    of_spread("lu_solve adjoint", lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, adjoint=True), BATCH, B),
    of_spread(
        "lu_solve right", lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b.mT, left=False, adjoint=True), A, B
    ),
    case("det", linalg.det, BATCH),
    case("det of a singular matrix", lambda a: linalg.det(a[:, :1] * a[:1]), A),
    case("slogdet", linalg.slogdet, BATCH),
    case("solve_triangular", lambda a, b: linalg.solve_triangular(spread(a), b, upper=True), BATCH, B),
    case(
        "solve_triangular right",
        lambda a, b: linalg.solve_triangular(a, b.mT, upper=False, left=False, unitriangular=True),
        A,
        B,
    ),
    case("triangular_solve", lambda a, b: torch.triangular_solve(b, spread(a), transpose=True), A, B),
    *(case(f"qr {mode} of {n}", lambda a, m=mode: linalg.qr(a, m), x)
      for mode in ("reduced", "complete") for n, x in (("tall", TALL), ("wide", WIDE), ("square", BATCH))),
    case("qr r", lambda a: linalg.qr(a, "r").R, TALL),
    case("geqrf", torch.geqrf, TALL),
    case("householder_product", lambda a: linalg.householder_product(*torch.geqrf(a)), TALL),
    case("ormqr", lambda a, b: torch.ormqr(*torch.geqrf(a), b), A, B),
    case("ormqr right", lambda a, b: torch.ormqr(*torch.geqrf(a), b.mT, left=False, transpose=True), A, B),
    case("svdvals", linalg.svdvals, BATCH),
    case("svdvals of a wide matrix", linalg.svdvals, WIDE),
    case("svd", linalg.svd, TALL).refused("does not give"),
    case("eigvalsh", lambda a: linalg.eigvalsh(a, UPLO="U"), BATCH),
    case("pinv", linalg.pinv, TALL),
    case("pinv of a wide matrix", linalg.pinv, WIDE),
    case("pinv of a singular matrix", lambda a: linalg.pinv(a[:, :1] * a[:1]), A),
    case("pinv hermitian", lambda a: linalg.pinv(a + a.mT, hermitian=True, rtol=1e-3), A),
    case("matrix_rank", linalg.matrix_rank, BATCH),
]  # fmt: skip
