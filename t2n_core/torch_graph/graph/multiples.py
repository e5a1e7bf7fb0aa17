"""Sizes that are multiples of a constant in the full range, written so that derived sizes show it.

If T is a multiple of 4, `T // 4` parts of 4 elements are T elements, but no engine can infer that. So inputs are sliced
to `4 * (T // 4)`, which removes nothing, and all sizes of the graph are computed from that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import sympy
from sympy.core.relational import Relational

from t2n_core.nnef.sizes.dims import Dim, FloorDiv, Modulo, Shape, as_dim, symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchOp

_SLICE = operator("aten::slice.Tensor")


def multiples(sizes: SizeRange, where: Iterable[Any], constants: Mapping[str, int]) -> tuple[SizeRange, dict[str, Dim]]:
    """Return the same range with its true lower bounds, and expressions for symbols with one remainder.

    The expression is `{"T": 4 * (T // 4)}` for `T % 4 == 0`.

    Symbols that are divided neither in a size nor in a condition of `where` are left out. `constants` are sizes in the
    range.
    """
    quotients = {q for formula in where if not isinstance(formula, int) for q in formula.atoms(FloorDiv, Modulo)}
    divided = {size.name for quotient in quotients for size in quotient.free_symbols}
    multiple_of: dict[str, Dim] = {}
    for name in sorted(divided & sizes.bounds.keys()):
        divisor = math.lcm(*_divisors(sizes.conditions, name))
        if divisor == 1:
            continue
        low, high = sizes.bounds[name]
        first = low + (constants[name] - low) % divisor
        sizes = sizes.narrowed(**{name: (first, high)})
        missing = -constants[name] % divisor
        size = symbol(name, first, high)
        multiple_of[name] = as_dim(divisor * FloorDiv(size + missing, sympy.Integer(divisor)) - missing)
    return sizes, multiple_of


def _divisors(conditions: Iterable[Relational], name: str) -> Iterator[int]:
    """Yield the divisors for which a condition fixes the remainder of a symbol."""
    for condition in conditions:
        left, right = condition.args
        if isinstance(condition, sympy.Eq) and isinstance(left, Modulo) and right.is_Integer:
            size, divisor = left.args
            if size.is_Symbol and size.name == name and divisor.is_Integer:
                yield int(divisor)


def slice_input(variable: TensorVariable, shape: Shape) -> list[TorchOp]:
    """Return the slices that cut an input to another shape; the last one has `variable` as its result."""
    steps: list[TorchOp] = []
    for axis, (have, want) in enumerate(zip(variable.shape, shape, strict=True)):
        if have != want:
            extents = (*variable.shape[:axis], want, *variable.shape[axis + 1 :])
            name = f"{variable.name}_whole"
            result = TensorVariable(name, None, extents, variable.dtype, fake=variable.fake)
            bounds = {"self": variable, "dim": axis, "start": 0, "end": want, "step": 1}
            result.producer = TorchOp("aten::slice.Tensor", "", (), (result,), name, _SLICE, arguments=bounds)
            steps.append(result.producer)
            variable = result
    return steps
