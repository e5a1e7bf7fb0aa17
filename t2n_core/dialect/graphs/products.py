"""The multiply-adds of operators that compute more numbers than they return, from the shapes of their tensors."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Final

from t2n_core.dialect.graphs.shapes import Arguments, Shape, extents_of


def _deconv(arguments: Arguments, result: Shape) -> int:
    """Each element of the input is multiplied with the filters of all channels of its group."""
    shape: Shape = arguments["input"].shape
    window: Shape = arguments["filter"].shape[2:]
    return prod(shape) * (result[1] // (arguments.get("groups", 1) or shape[1])) * prod(window)


def _einsum(arguments: Arguments, _: Shape) -> int:
    return prod(extents_of(arguments).values()) if len(arguments["inputs"]) > 1 else 0


PRODUCTS: Final[dict[str, Callable[[Arguments, Shape], int]]] = {
    **dict.fromkeys(("linear", "conv"), lambda given, result: prod(result) * prod(given["filter"].shape[1:])),
    **dict.fromkeys(("tract_core_einsum", "tract_onnx_einsum"), _einsum),
    "matmul": lambda given, result: prod(result) * int(given["A"].shape[-2 if given.get("transposeA") else -1]),
    "deconv": _deconv,
    "tract_transformers_sdpa": lambda given, result: (prod(given["q"].shape) + prod(result)) * given["k"].shape[-2],
}
"""Their definitions compute each one, without an order of sums that takes fewer."""
