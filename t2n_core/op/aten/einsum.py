"""`einsum` of two tensors as one product of matrices, with as many batch axes as it has.

PyTorch's own decomposition merges the batch axes, and with a dynamic one each operand is reshaped twice for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.nnef.sizes.dims import Dim, is_static, product, same
from t2n_core.op.registry import op
from t2n_core.torch_graph.graph.ir import TorchOp


@dataclass(frozen=True, slots=True)
class _Product:
    """The axes of an `einsum` that is a product of matrices, as letters in the order of its result."""

    operands: tuple[str, str]
    result: str
    batch: str
    rows: str
    columns: str
    summed: str


def _product_of(equation: str) -> _Product | None:
    """Return the axes of a product; None if it is none, or if one operand has an axis alone that is summed."""
    matched = re.fullmatch(r"([a-zA-Z]+),([a-zA-Z]+)->([a-zA-Z]+)", equation.replace(" ", ""))
    if matched is None or any(len(set(letters)) < len(letters) for letters in matched.groups()):
        return None
    left, right, result = matched.groups()
    if set(left) ^ set(right) != (set(left) ^ set(right)) & set(result) or set(result) - set(left + right):
        return None
    batch = "".join(letter for letter in result if letter in left and letter in right)
    rows = "".join(letter for letter in result if letter not in right)
    columns = "".join(letter for letter in result if letter not in left)
    summed = "".join(letter for letter in left if letter not in result)
    return _Product((left, right), result, batch, rows, columns, summed) if rows and columns and summed else None


def _is_product(node: TorchOp) -> bool:
    contraction, tensors = _product_of(node.arguments["equation"]), node.arguments["tensors"]
    if contraction is None or len(tensors) != 2 or not all(tensor.dtype.is_floating_point for tensor in tensors):
        return False
    pairs = [(letter, size) for tensor, letters in zip(tensors, contraction.operands, strict=True)
             for letter, size in zip(letters, tensor.shape, strict=True)]  # fmt: skip
    sizes = dict(pairs)
    merged = [group for group in (contraction.rows, contraction.columns, contraction.summed) if len(group) > 1]
    is_fixed = all(is_static([sizes[letter] for letter in group]) for group in merged)
    return is_fixed and all(same(size, sizes[letter]) for letter, size in pairs)  # none is repeated for the other


@op("aten::einsum", implied=("path",), when=_is_product)
def einsum(g: Emitter, equation: str, tensors: Sequence[Value]) -> Value:
    contraction = _product_of(equation)
    assert contraction is not None
    sizes: dict[str, Dim] = {}
    for letters, tensor in zip(contraction.operands, tensors, strict=True):
        sizes |= dict(zip(letters, tensor.shape, strict=True))
    first, other = zip(contraction.operands, tensors, strict=True)
    if contraction.result.endswith(contraction.rows) and not contraction.result.endswith(contraction.columns):
        first, other = other, first
        rows, columns = contraction.columns, contraction.rows
    else:
        rows, columns = contraction.rows, contraction.columns
    left = _as_matrices(g, *first, contraction.batch, rows, contraction.summed)
    right = _as_matrices(g, *other, contraction.batch, contraction.summed, columns)
    order = contraction.batch + rows + columns
    wide = g.reshape_to(g.matmul(left, right), [sizes[letter] for letter in order])
    return g.permute(wide, [order.index(letter) for letter in contraction.result])


def _as_matrices(g: Emitter, letters: str, value: Value, *groups: str) -> Value:
    """Return a value with the axes of the first group, and one for each other group."""
    batch, *others = groups
    order = "".join(groups)
    sizes = dict(zip(letters, value.shape, strict=True))
    moved = g.permute(value, [letters.index(letter) for letter in order])
    merged: list[Any] = [product(sizes[letter] for letter in group) for group in others]
    return g.reshape_to(moved, [*(sizes[letter] for letter in batch), *merged])
