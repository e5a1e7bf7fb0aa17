"""LU factors with row exchanges, and what is computed from them: systems, inverses, determinants."""

from __future__ import annotations

import torch
from torch import Tensor

from t2n_core.torch_graph.custom_ops.factorisation_steps import least, loop
from t2n_core.torch_graph.simplify.decompositions import Refusal, decomposition
from t2n_core.torch_graph.simplify.decompositions.triangular import solve_batch, solve_triangle


def lu_factor(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return (L below and U above the diagonal, row exchanges from 1, order of the rows), as LAPACK's getrf does."""
    lu, pivots = loop("lu", a)
    return lu, pivots, order_of(pivots, a.shape[-2])


def order_of(pivots: Tensor, rows: int) -> Tensor:
    """Return the order of the rows after a list of exchanges."""
    row_order: Tensor = loop("order", pivots, rows)
    return row_order


def _refuse_without_exchanges(pivot: bool) -> None:
    if not pivot:
        raise Refusal("an LU factor without exchanges: PyTorch itself computes it only on GPUs")


def permutation(order: Tensor, dtype: torch.dtype) -> Tensor:
    """Return P with a = P L U, from the order of the rows of a."""
    return (torch.arange(order.shape[-1]).unsqueeze(-1) == order.unsqueeze(-2)).to(dtype)


def upper_info(lu: Tensor) -> Tensor:
    """Return the index (from 1) of the first zero on the diagonal of U, 0 if there is none."""
    zero = (lu.diagonal(0, -2, -1) == 0).to(torch.int32)
    return torch.where(zero.amax(-1) > 0, zero.argmax(-1) + 1, 0).to(torch.int32)


def solve_factored(lu: Tensor, order: Tensor, b: Tensor) -> Tensor:
    """Return x with a x = b; batches broadcast."""

    def solve(lu: Tensor, b: Tensor) -> Tensor:
        places = order.reshape(-1) if lu.dim() == 2 else order.expand(lu.shape[:-1])
        b = b.gather(-2, places.unsqueeze(-1).expand(b.shape))
        return solve_triangle(lu, solve_triangle(lu, b, upper=False, unit=True), upper=True)

    return solve_batch(solve, lu, b)


def _is_vector(a: Tensor, b: Tensor) -> bool:
    """Return whether `b` is a batch of vectors; the last sizes, which are more often static, are compared first."""
    pairs = zip(reversed(b.shape), reversed(a.shape[:-1]), strict=False)
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and all(size == other for size, other in pairs))


def _exchanges_sign(pivots: Tensor, dtype: torch.dtype) -> Tensor:
    moved = pivots != torch.arange(1, pivots.shape[-1] + 1, dtype=torch.int32)
    return 1 - 2 * (moved.to(dtype).sum(-1) % 2)


@decomposition("aten::_linalg_det")
def _linalg_det(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    lu, pivots, _ = lu_factor(A)
    return lu.diagonal(0, -2, -1).prod(-1) * _exchanges_sign(pivots, A.dtype), lu, pivots


@decomposition("aten::_linalg_slogdet")
def _linalg_slogdet(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    lu, pivots, _ = lu_factor(A)
    diagonal = lu.diagonal(0, -2, -1)
    sign = diagonal.sign().prod(-1) * _exchanges_sign(pivots, A.dtype)
    return sign, diagonal.abs().log().sum(-1), lu, pivots


@decomposition("aten::linalg_inv_ex")
def linalg_inv_ex(A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    lu, _, order = lu_factor(A)
    eye = torch.eye(A.shape[-1], dtype=A.dtype).expand(A.shape)
    return solve_factored(lu, order, eye), upper_info(lu)


@decomposition("aten::linalg_matrix_power", "aten::matrix_power")
def matrix_power(self: Tensor, n: int) -> Tensor:
    """Return PyTorch's own products; the unit matrix, which PyTorch fills in place, is made here."""
    if n == 0:
        return torch.eye(self.shape[-1], dtype=self.dtype).expand(self.shape)
    return torch.matrix_power(self, n)


@decomposition("aten::_linalg_solve_ex")
def _linalg_solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    vector = _is_vector(A, B)
    b = B.unsqueeze(-1) if vector else B
    lu, pivots, order = lu_factor(A if left else A.mT)
    x = solve_factored(lu, order, b if left else b.mT)
    x = x if left else x.mT
    return (x.squeeze(-1) if vector else x), lu, pivots, upper_info(lu)


@decomposition("aten::linalg_lu_factor_ex")
def linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    _refuse_without_exchanges(pivot)
    lu, pivots, _ = lu_factor(A)
    return lu, pivots, upper_info(lu)


@decomposition("aten::linalg_lu")
def linalg_lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    _refuse_without_exchanges(pivot)
    lu, _, order = lu_factor(A)
    return permutation(order, A.dtype), *_triangles(lu)


@decomposition("aten::linalg_lu_solve")
def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    order = order_of(pivots, LU.shape[-1])
    b = B if left else B.mT
    if adjoint == left:  # then the system has the transposed matrix: Uᵀ Lᵀ Pᵀ x = b
        y = solve_batch(
            lambda lu, b: solve_triangle(lu.mT, solve_triangle(lu.mT, b, upper=False), upper=True, unit=True), LU, b
        )
        x = permutation(order, LU.dtype) @ y
    else:
        x = solve_factored(LU, order, b)
    return x if left else x.mT


@decomposition("aten::lu_unpack")
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    none = LU_data.new_empty(0)
    exchanges = LU_pivots[..., : least(*LU_data.shape[-2:])]
    p = permutation(order_of(exchanges, LU_data.shape[-2]), LU_data.dtype) if unpack_pivots else none
    return p, *(_triangles(LU_data) if unpack_data else (none, none))


def _triangles(lu: Tensor) -> tuple[Tensor, Tensor]:
    count = least(*lu.shape[-2:])
    lower = lu[..., :, :count].tril(-1) + torch.eye(lu.shape[-2], count, dtype=lu.dtype)
    return lower, lu[..., :count, :].triu()
