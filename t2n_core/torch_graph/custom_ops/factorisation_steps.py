"""Factorisations as one operator each, for sizes that are symbolic, or too large to unroll.

Matrices are [..., rows, columns] with at least one leading axis. A rule lowers each operator to a loop; constants are
folded by PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from t2n_core.torch_graph.custom_ops.definition import define

least: Callable[..., Any] = torch.sym_min
"""Returns the smaller of two sizes, which may be symbolic."""
library = torch.library.Library("t2n_loops", "DEF")  # type: ignore[no-untyped-call]
"""The operators:

cholesky    (lower factor, pivots [..., N]); reads the lower triangle
lu          (L below and U above the diagonal, row exchanges from 1), as LAPACK's getrf gives them
order       order [..., rows] of the rows after a list of exchanges
solve       x with a x = b for a triangular a, whose other triangle is not read
reflections (R above the vectors of the reflections, their scales), as LAPACK's geqrf gives them
reflect     Q other, or Qᵀ other
orthogonal  a times a rotation that makes its columns orthogonal to each other in the first rows
"""


def loop(name: str, *arguments: Any) -> Any:
    """Call an operator, also for matrices without a leading axis."""
    alone = arguments[0].dim() == (1 if name == "order" else 2)
    operands = [a.unsqueeze(0) if alone and isinstance(a, Tensor) else a for a in arguments]
    result = getattr(torch.ops.t2n_loops, name)(*operands)
    if not alone:
        return result
    return result.squeeze(0) if isinstance(result, Tensor) else tuple(x.squeeze(0) for x in result)


def _cholesky(a: Tensor) -> tuple[Tensor, Tensor]:
    factor: Tensor = torch.linalg.cholesky_ex(a).L
    return factor, factor.diagonal(0, -2, -1).square()


def _lu(a: Tensor) -> tuple[Tensor, Tensor]:
    lu, pivots, _ = torch.linalg.lu_factor_ex(a)
    return lu, pivots


def _order(pivots: Tensor, rows: int) -> Tensor:
    eye = torch.eye(rows, pivots.shape[-1]).expand(*pivots.shape[:-1], -1, -1)
    permutation: Tensor = torch.lu_unpack(eye, pivots)[0]
    return permutation.argmax(-2)


def _solve(a: Tensor, b: Tensor, upper: bool, unit: bool) -> Tensor:
    solution: Tensor = torch.linalg.solve_triangular(a, b, upper=upper, unitriangular=unit)
    return solution


def _reflect(packed: Tensor, scales: Tensor, other: Tensor, transpose: bool) -> Tensor:
    return torch.ormqr(packed, scales, other, transpose=transpose)


def _orthogonal(a: Tensor, rows: int) -> Tensor:
    product: Tensor = a @ torch.linalg.svd(a[..., :rows, :]).Vh.mT
    return product


def _diagonal(a: Tensor) -> Tensor:
    """Return an empty tensor of the diagonal's size."""
    return a.new_empty([*a.shape[:-2], least(*a.shape[-2:])])


_Computed = Callable[..., Any]
_OPERATORS: dict[str, tuple[_Computed, _Computed]] = {
    "cholesky(Tensor a) -> (Tensor, Tensor)": (_cholesky, lambda a: (torch.empty_like(a), _diagonal(a))),
    "lu(Tensor a) -> (Tensor, Tensor)": (_lu, lambda a: (torch.empty_like(a), _diagonal(a).to(torch.int32))),
    "order(Tensor pivots, SymInt rows) -> Tensor": (
        _order,
        lambda pivots, rows: pivots.new_empty([*pivots.shape[:-1], rows], dtype=torch.int64),
    ),
    "solve(Tensor a, Tensor b, bool upper, bool unit) -> Tensor": (
        _solve,
        lambda a, b, upper, unit: torch.empty_like(b),
    ),
    "reflections(Tensor a) -> (Tensor, Tensor)": (torch.geqrf, lambda a: (torch.empty_like(a), _diagonal(a))),
    "reflect(Tensor packed, Tensor scales, Tensor other, bool transpose) -> Tensor": (
        _reflect,
        lambda packed, scales, other, transpose: torch.empty_like(other),
    ),
    "orthogonal(Tensor a, SymInt rows) -> Tensor": (_orthogonal, lambda a, rows: torch.empty_like(a)),
}
for _schema, (_numbers, _shapes) in _OPERATORS.items():
    define(library, _schema, _shapes, _numbers)
