"""Products of matrices, and sums of products that an expression describes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2n_core.dialect.arrays import Array, data_type
from t2n_core.dialect.registry import defines
from t2n_core.errors import SpecError


def sum_of_products(inputs: Sequence[Array], expr: str, op: str) -> Array:
    """Return the sum of products that `expr` describes, with an axis of extent 1 repeated where others are longer.

    Raises SpecError for an expression without `->`, or with another number of operands.
    """
    left, arrow, right = expr.replace(" ", "").partition("->")
    operands = left.split(",")
    if not arrow or len(operands) != len(inputs):
        raise SpecError(f"{len(inputs)} operands, and the expression {expr!r}", op=op)
    extents: dict[str, int] = {}
    for letters, operand in zip(operands, inputs, strict=True):
        for letter, extent in zip(letters, operand.shape, strict=True):
            extents[letter] = extent if extents.get(letter, 1) == 1 else extents[letter]
    repeated = [
        np.broadcast_to(operand, [extents[letter] for letter in letters])
        for letters, operand in zip(operands, inputs, strict=True)
    ]
    shared_letters = [letter for letter in right if letter in extents]
    product = np.einsum(f"{','.join(operands)}->{''.join(shared_letters)}", *repeated)
    return np.asarray(product).reshape([extents.get(letter, 1) for letter in right])


def legacy_axes(rank: int, axes: Sequence[int], op: str) -> str:
    """Return the expression for the six axes [a_m, a_k, b_k, b_n, c_m, c_n] of a matrix product of one rank.

    Every other axis is a batch axis, the same in all three. Raises SpecError for another number of axes.
    """
    if len(axes) != 6:
        raise SpecError(f"six axes are needed, not {len(axes)}", op=op)
    letters = [chr(ord("a") + at) for at in range(rank)]
    a, b, c = list(letters), list(letters), list(letters)
    a_m, a_k, b_k, b_n, c_m, c_n = axes
    a[a_m], a[a_k], b[b_k], b[b_n], c[c_m], c[c_n] = "M", "K", "K", "N", "M", "N"
    return f"{''.join(a)},{''.join(b)}->{''.join(c)}"


@defines("tract_core_einsum", result="acc")
def einsum(inputs: Sequence[Array], expr: str, acc: str, output: str = "") -> Array:
    """Return the sum of products of tensors that an expression describes.

    Formula: `mk,kn->mn` is out[m, n] = sum over k of a[m, k] * b[k, n]; a letter that the result lacks is summed, and
    a letter that an operand repeats is its diagonal. `acc` is the type of the sum and of the result. Shapes: an axis of
    extent 1 is repeated where the same letter is longer elsewhere; a letter that only the result has gives an axis of
    extent 1. `output` is the type of a quantised result, and empty otherwise.
    Special values: 0 over an empty axis; integers multiply and add modulo the width of `acc`.
    Source: torch.einsum; tract core/src/ops/einsum/mod.rs.
    """
    kind = data_type(acc)
    widened = [operand.astype(kind) if kind.kind in "iu" else operand for operand in inputs]
    with np.errstate(over="ignore", invalid="ignore"):
        return sum_of_products(widened, expr, "tract_core_einsum")


@defines("tract_onnx_einsum")
def onnx_einsum(inputs: Sequence[Array], expr: str) -> Array:
    """Return the sum of products of tensors that an expression describes, in the first tensor's type.

    Formula and shapes: as for `tract_core_einsum`.
    Source: ONNX Einsum-12; tract 0.19.15, onnx-opl/src/einsum.rs.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return sum_of_products(inputs, expr, "tract_onnx_einsum")


@defines("tract_core_matmul")
def matmul(A: Array, B: Array, axes: Sequence[int]) -> Array:
    """Return the matrix product of two tensors of one rank, whose axes are given by number.

    Formula: C[.., m, .., n] = sum over k of A[.., m, .., k] * B[.., k, .., n]; `axes` are the positions of m and k in
    A, of k and n in B, of m and n in C; every other axis is a batch axis, at the same position in all three, and one of
    extent 1 is repeated.
    Special values: 0 over an empty k.
    Source: tract nnef/src/ops/core/matmul.rs, qmatmul.rs (the axes).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return sum_of_products([A, B], legacy_axes(A.ndim, axes, "tract_core_matmul"), "tract_core_matmul")
