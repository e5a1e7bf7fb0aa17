"""Products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.meaning.broadcasting import aligned
from t2n_core.dialect.registry import defines


@defines("matmul")
def matmul(A: NDArray[Any], B: NDArray[Any], transposeA: bool = False, transposeB: bool = False) -> NDArray[Any]:
    """Return the matrix products over the last two axes, each operand transposed first if asked.

    Formula: C[…, m, n] = sum over k of A[…, m, k] * B[…, k, n].
    Shapes: the axes before the last two broadcast. The ranks are equal; where one operand is a weight in blocks of 4
    bits, tract adds axes of extent 1 at the front of the other.
    Special values: 0 * inf = NaN; an empty k gives zeros. Integers wrap around.
    Source: NNEF 1.0.5, Matrix Multiplication; tract nnef/src/ops/nnef/deser.rs for blocks.
    """
    left = np.swapaxes(A, -1, -2) if transposeA else A
    right = np.swapaxes(B, -1, -2) if transposeB else B
    return np.matmul(left, right)


@defines("linear")
def linear(input: NDArray[Any], filter: NDArray[Any], bias: NDArray[Any] | float = 0.0) -> NDArray[Any]:
    """Return the products of the input's rows with the filter's rows, plus a bias.

    Formula: matmul(input, filter, transposeB = true) + bias.
    Shapes: input [n, i], filter [o, i], bias [1, o] or one value, result [n, o].
    Source: NNEF 1.0.5, Linear Operations (linear).
    """
    product, added = aligned(matmul(input, filter, transposeB=True), np.asarray(bias))
    return product + added
