"""Dynamic axes declared for outputs: they have no effect, and must agree with the inferred ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sympy

from t2n_core.errors import InputError
from t2n_core.nnef.sizes.dims import Dim
from t2n_core.torch_graph.constraints.declared_axes import size_of


def of_inputs(declared: Mapping[str, Any] | None, inputs: Collection[str]) -> dict[str, Any] | None:
    """Return the declarations for inputs; None if there are none."""
    return {name: axes for name, axes in (declared or {}).items() if name in inputs} or None


def check_output_axes(
    declared: Mapping[str, Any] | None,
    inputs: Sequence[str],
    outputs: Mapping[str, Sequence[Dim]],
    symbols: Collection[str],
) -> None:
    """Compare the axes declared for outputs with their shapes; a name that is not a symbol of the inputs is any size.

    Raises InputError for a name that is neither an input nor an output, an axis out of range, and another size.
    """
    for name, axes in (declared or {}).items():
        if name in inputs:
            continue
        if name not in outputs:
            raise InputError(
                f"dynamic_axes names `{name}`; the inputs are {', '.join(inputs)}, the outputs {', '.join(outputs)}",
                hint="use input_names=[...] or output_names=[...] to name them",
            )
        shape = outputs[name]
        for axis, declared_size in axes.items() if isinstance(axes, Mapping) else [(axis, "any") for axis in axes]:
            if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
                raise InputError(f"dynamic_axes: the output `{name}` has rank {len(shape)}, there is no axis {axis}")
            _check(name, axis, declared_size, shape[axis], symbols)


def _check(name: str, axis: int, declared_size: Any, extent: Dim, symbols: Collection[str]) -> None:
    """Raise InputError unless an axis has the declared size."""
    size, _ = size_of(declared_size, "any")
    free_symbols = {symbol.name: symbol for symbol in extent.free_symbols} if isinstance(extent, sympy.Expr) else {}
    if size is None:
        right, declaration = not free_symbols, "static"
    elif size.name not in symbols:
        right, declaration = bool(free_symbols), "dynamic"
    else:
        right = size.name in free_symbols and bool(sympy.simplify(extent - size.extent(free_symbols[size.name])) == 0)
        declaration = str(size)
    if not right:
        raise InputError(
            f"dynamic_axes: axis {axis} of the output `{name}` is {extent}, and is declared as {declaration}",
            hint="sizes of outputs are inferred from those of inputs: declare the inferred size, or none",
        )
