"""The exponential of a matrix of any size, by scaling and squaring."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from t2n_core.torch_graph.simplify.decompositions import Refusal, decomposition

_TERMS = 18
"""Terms of the Taylor series; the remainder is below 1e-8, enough for float32, if the norm is at most NEAR."""
_NEAR = 3.0
_HALVINGS = 16
"""The norm may be up to NEAR * 2^16; beyond, the result is NaN."""


@decomposition("aten::linalg_matrix_exp", "aten::matrix_exp")
def matrix_exp(self: Tensor) -> Tensor:
    """exp(A) = exp(A / 2^s)^(2^s), with s for each matrix by its norm."""
    if self.dtype in (torch.float16, torch.bfloat16):
        raise Refusal("the exponential of a float16 matrix overflows on the way and cannot be expressed in NNEF")
    x = self
    norm = x.abs().sum(-2).amax(-1)[..., None, None]
    large = [norm > _NEAR * 2**step for step in range(_HALVINGS)]
    for is_large in large:
        x = torch.where(is_large, x / 2, x)
    unit = torch.eye(x.shape[-1], dtype=x.dtype)
    power = unit + x / _TERMS
    for term in range(_TERMS - 1, 0, -1):
        power = unit + x @ power / term
    for is_large in large:
        power = torch.where(is_large, power @ power, power)
    return torch.where(norm > _NEAR * 2**_HALVINGS, math.nan, power)
