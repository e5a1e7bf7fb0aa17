"""Factors of matrices, and what is computed from them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.contract.cases import Case, case, randn, tensor

linalg, aten = torch.linalg, torch.ops.aten
A, BATCH, TALL, WIDE = randn(4, 4), randn(2, 4, 4), randn(5, 3), randn(3, 5)
B, VECTOR = randn(4, 2), randn(4)
SQUARE, ANY = {0: "N", 1: "N"}, {0: {0: "M", 1: "N"}}
SQUARES = {0: {0: "B", 1: "N", 2: "N"}}
ONE, WITH = {0: SQUARE}, {0: SQUARE, 1: {0: "N", 1: "K"}}


def spread(a: Tensor) -> Tensor:
    """A matrix far from singular, so that rounding does not decide."""
    return a + 4 * torch.eye(a.shape[-1])


def constant() -> Tensor:
    """A matrix that does not depend on any input."""
    return spread(torch.ones(4, 4).triu())


def positive(a: Tensor) -> Tensor:
    return a @ a.mT + torch.eye(a.shape[-1])


def of_spread(name: str, function: Any, *args: Any) -> Case:
    return case(name, lambda a, *rest: function(spread(a), *rest), *args)


CASES = [
    case("cholesky", lambda a: linalg.cholesky(positive(a)), BATCH),
    case("cholesky upper", lambda a: torch.cholesky(positive(a), upper=True), A).about("aten::cholesky"),
    case("cholesky_ex", lambda a: linalg.cholesky_ex(positive(a)), A),
    case("cholesky_ex of a matrix without", lambda a: linalg.cholesky_ex(positive(a) - 9 * torch.eye(4)).info, A),
    case("cholesky_solve", lambda a, b: torch.cholesky_solve(b, linalg.cholesky(positive(a))), A, B),
    case("cholesky_inverse", lambda a: torch.cholesky_inverse(linalg.cholesky(positive(a)), upper=False), BATCH),
    case("cholesky of varying batch", lambda a: linalg.cholesky(positive(a)), BATCH).dynamic({0: {0: "N"}}),
    case("cholesky of varying size", lambda a: linalg.cholesky(positive(a)), A).dynamic(ONE),
    case("cholesky_ex of varying size", lambda a: linalg.cholesky_ex(positive(a), upper=True).L, BATCH)
    .dynamic(SQUARES),
    case("cholesky_ex of varying size without", lambda a: linalg.cholesky_ex(a + a.mT), A).dynamic(ONE),
    case("cholesky_solve of varying size", lambda a, b: torch.cholesky_solve(b, linalg.cholesky(positive(a))), A, B)
    .dynamic(WITH),
    of_spread("inv", linalg.inv, BATCH),
    of_spread("inv_ex", lambda a: linalg.inv_ex(a), A),
    case("matrix_power 0 of dynamic size", lambda x: torch.linalg.matrix_power(x, 0), randn(2, 5, 5)).dynamic(
        {0: {0: "B", 1: "N", 2: "N"}}
    ),
    case("matrix_power", torch.matrix_power, randn(2, 3, 3), 5).dynamic({0: {0: "B"}}),
    case("matrix_power of 0", torch.matrix_power, randn(2, 3, 3), 0),
    case("matrix_power, linalg", torch.linalg.matrix_power, randn(2, 3, 3), 2),
    case("matrix_power of -3", lambda x: torch.matrix_power(x + 3 * torch.eye(3), -3), randn(2, 3, 3)),
    of_spread("solve", linalg.solve, A, B),
    of_spread("solve a vector", linalg.solve, A, VECTOR),
    of_spread("solve from the right", lambda a, b: linalg.solve(a, b.mT, left=False), A, B),
    case("solve of a constant matrix", lambda b: linalg.solve(constant(), b), randn(2, 4, 3)),
    case("solve of a constant matrix and a varying batch", lambda b: linalg.solve(constant(), b), randn(2, 3, 4, 5))
    .dynamic({0: {0: "N"}}),
    case(
        "a constant repeated for a varying batch",
        lambda b: linalg.solve(constant().expand(len(b), 4, 4), b) * linalg.inv(torch.full((len(b), 1, 1), 2.0)),
        randn(2, 4, 3),
    ).dynamic({0: {0: "N"}}),
    case(
        "a constant repeated for a varying number of integers, with squares that overflow",
        lambda n: linalg.inv(constant().expand(len(n), 4, 4)) * n[:, None, None],
        tensor([4_000_000_000, 3]),
    ).dynamic({0: {0: "N"}}),
    of_spread("solve of one matrix", lambda a, b: linalg.solve(a[None], b), A, randn(2, 4, 3)),
    of_spread("solve of varying batch", linalg.solve, BATCH, B).dynamic({0: {0: "N"}}),
    of_spread("inv of varying size", linalg.inv, BATCH).dynamic(SQUARES),
    of_spread("inv of many rows", linalg.inv, randn(70, 70, scale=0.1)),
    of_spread("solve of varying size", linalg.solve, A, B).dynamic(WITH),
    of_spread("solve a vector of varying size", linalg.solve, A, VECTOR).dynamic({0: SQUARE, 1: {0: "N"}}),
    of_spread("lu", linalg.lu, randn(3, 3)),
    case("lu of a tall matrix", linalg.lu, TALL),
    case("lu of a wide matrix", linalg.lu, WIDE),
    case("lu_factor", linalg.lu_factor, BATCH),
    case("lu_factor_ex of a singular matrix", lambda a: linalg.lu_factor_ex(a * torch.tensor([1.0, 0.0, 1.0])), TALL),
    case("lu_unpack", lambda a: torch.lu_unpack(*linalg.lu_factor(a)), TALL),
    case("lu of varying size", linalg.lu, TALL).dynamic(ANY),
    case("lu_factor of varying size", linalg.lu_factor, BATCH).dynamic(SQUARES),
    case("lu_factor of equal numbers", lambda a: linalg.lu_factor_ex(a.sign()), randn(3, 2)).dynamic({0: {0: "M"}}),
    case("lu_factor_ex of varying size, singular", lambda a: linalg.lu_factor_ex((a[:, :1] * a[:1]).sign()).info, A)
    .dynamic(ONE),
    case("lu_unpack of varying size", lambda a: torch.lu_unpack(*linalg.lu_factor(a)), TALL).dynamic(ANY),
    case("lu_unpack of what is given", torch.lu_unpack, randn(4, 4), tensor([2, 4, 3, 4], torch.int32))
    .dynamic({0: SQUARE, 1: {0: "N"}}),
    of_spread("lu_solve adjoint of varying size", lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, adjoint=True),
              A, B).dynamic(WITH),
    of_spread("lu_solve", lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b), A, B),
    of_spread("lu_solve adjoint of one matrix", lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, adjoint=True),
              A, randn(2, 4, 3)),
    of_spread("lu_solve adjoint", lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, adjoint=True), BATCH, B),
    of_spread(
        "lu_solve right", lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b.mT, left=False, adjoint=True), A, B
    ),
    case("det", linalg.det, BATCH),
    case("det of a singular matrix", lambda a: linalg.det(a[:, :1] * a[:1]), A),
    case("slogdet", linalg.slogdet, BATCH),
    case("det of varying size", linalg.det, BATCH).dynamic(SQUARES),
    case("slogdet of varying size", linalg.slogdet, A).dynamic(ONE),
    case("solve_triangular", lambda a, b: linalg.solve_triangular(spread(a), b, upper=True), BATCH, B),
    case(
        "solve_triangular right",
        lambda a, b: linalg.solve_triangular(a, b.mT, upper=False, left=False, unitriangular=True),
        A,
        B,
    ),
    case("solve_triangular of a constant matrix", lambda b: linalg.solve_triangular(constant(), b, upper=True),
         randn(2, 4, 3)).dynamic({0: {0: "N"}}),
    case("triangular_solve", lambda a, b: torch.triangular_solve(b, spread(a), transpose=True), A, B),
    case("solve_triangular of varying size", lambda a, b: linalg.solve_triangular(spread(a), b, upper=True), A, B)
    .dynamic(WITH),
    case("solve_triangular right of varying size", lambda a, b: linalg.solve_triangular(
        spread(a), b.mT, upper=True, left=False, unitriangular=True), A, B).dynamic(WITH),
    *(case(f"qr {mode} of varying size", lambda a, m=mode: linalg.qr(a, m), TALL).dynamic(ANY)
      for mode in ("reduced", "complete")),
    case("qr of varying height", linalg.qr, randn(2, 7, 3)).dynamic({0: {1: "M"}}),
    *(case(f"qr {mode} of {n}", lambda a, m=mode: linalg.qr(a, m), x)
      for mode in ("reduced", "complete") for n, x in (("tall", TALL), ("wide", WIDE), ("square", BATCH))),
    case("qr r", lambda a: linalg.qr(a, "r").R, TALL),
    case("geqrf", torch.geqrf, TALL),
    case("householder_product", lambda a: linalg.householder_product(*torch.geqrf(a)), TALL),
    case("ormqr", lambda a, b: torch.ormqr(*torch.geqrf(a), b), A, B),
    case("ormqr right", lambda a, b: torch.ormqr(*torch.geqrf(a), b.mT, left=False, transpose=True), A, B),
    case("geqrf of varying size", torch.geqrf, TALL).dynamic(ANY),
    case("householder_product of varying size", lambda a, t: linalg.householder_product(a, t), TALL, randn(3))
    .dynamic({0: {0: "M", 1: "N"}, 1: {0: "N"}}),
    case("ormqr of varying size", lambda a, b: torch.ormqr(*torch.geqrf(a), b, transpose=True), A, B).dynamic(WITH),
    case("svdvals of varying size", linalg.svdvals, randn(2, 5, 4)).dynamic({0: {0: "B", 1: "M", 2: "N"}}),
    case("svdvals of many columns", linalg.svdvals, randn(40, 33)),
    case("eigvalsh of varying size", lambda a: linalg.eigvalsh(a + a.mT), BATCH).dynamic(SQUARES),
    case("pinv of varying size", linalg.pinv, TALL).dynamic(ANY),
    case("matrix_rank of varying size", lambda a: linalg.matrix_rank(a @ a.mT[:2].mT @ a[:2]), A).dynamic(ONE),
    case("lstsq", lambda a, b: linalg.lstsq(a, b).solution, TALL, randn(5, 2)),
    case("lstsq of full rank", lambda a, b: linalg.lstsq(a, b, driver="gels")[:2], TALL, randn(5, 2)),
    case("lstsq of a wide matrix", lambda a, b: linalg.lstsq(a, b, driver="gelss"), WIDE, randn(3, 2)),
    # Of full rank: PyTorch passes uninitialised memory to `gelsy` as `jpvt`, so that any other rank it finds is random.
    case("lstsq of varying size", lambda a, b: linalg.lstsq(a.tanh() + 30 * torch.eye(*a.shape), b), TALL, randn(5, 2))
    .dynamic({0: {0: "M", 1: "N"}, 1: {0: "M", 1: "K"}}),
    case("matrix_exp", linalg.matrix_exp, BATCH),
    case("matrix_exp of norms from 0.01 to 40", lambda a, s: torch.matrix_exp(a * s), randn(3, 4, 4),
         tensor([[[0.002]], [[1.0]], [[9.0]]])),
    case("matrix_exp of varying size", linalg.matrix_exp, randn(4, 4, dtype=torch.float64)).dynamic(ONE),
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
