"""Orthogonal factors by Householder reflections, in the order and with the signs of LAPACK's geqrf."""

from __future__ import annotations

import torch
from torch import Tensor

from t2n_core.torch_graph.custom_ops.factorisation_steps import least, loop
from t2n_core.torch_graph.simplify.decompositions import decomposition


def factor(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return (R above the reflections' vectors, their scales)."""
    packed, scales = loop("reflections", a)
    return packed, scales


def reflect(packed: Tensor, scales: Tensor, other: Tensor, *, transpose: bool) -> Tensor:
    """Return Q other, or Qᵀ other."""
    product: Tensor = loop("reflect", packed, scales, other, transpose)
    return product


@decomposition("aten::geqrf")
def geqrf(self: Tensor) -> tuple[Tensor, Tensor]:
    return factor(self)


@decomposition("aten::linalg_qr")
def linalg_qr(A: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    rows, columns = A.shape[-2:]
    packed, scales = factor(A)
    width = rows if mode == "complete" else least(rows, columns)
    if mode == "r":
        return A.new_empty(0), packed[..., :width, :].triu()
    eye = torch.eye(rows, width, dtype=A.dtype).expand(*A.shape[:-2], rows, width)
    return reflect(packed, scales, eye, transpose=False), packed[..., :width, :].triu()


@decomposition("aten::linalg_householder_product")
def linalg_householder_product(input: Tensor, tau: Tensor) -> Tensor:
    eye = torch.eye(*input.shape[-2:], dtype=input.dtype).expand(input.shape)
    return reflect(input, tau, eye, transpose=False)


@decomposition("aten::ormqr")
def ormqr(self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    if left:
        return reflect(self, input2, input3, transpose=transpose)
    return reflect(self, input2, input3.mT, transpose=not transpose).mT
