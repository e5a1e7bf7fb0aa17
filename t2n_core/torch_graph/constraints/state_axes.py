"""The dynamic axes of a state: axes declared by the user, and axes that grow from call to call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from t2n_core.torch_graph.constraints.declared_axes import DynamicAxes, SizeFrom
from t2n_core.torch_graph.frontend.state.state import ModelState

PAST: Final = "P"
"""The symbol of the length of a growing state, which is 0 before the first call."""


def with_state_axes(declared: DynamicAxes | None, state: ModelState | None) -> DynamicAxes | None:
    """Return the declared axes and the growing axes.

    A declaration for a state's argument applies to all of its tensors. Growing axes without a declared size get the
    symbol `P`; axes of other lengths in the example get `P1`, `P2`, and so on.
    """
    if state is None:
        return declared
    all_axes: dict[str, dict[int, Any]] = {}
    for name, axes in (declared or {}).items():
        tensors = state.of(name)
        for input_name in [tensor.input for tensor in tensors] or [name]:
            all_axes[input_name] = {**all_axes.get(input_name, {}), **_sizes(axes, name if tensors else input_name)}
    lengths: dict[int, str] = {}
    for tensor in state.tensors:
        of_input = all_axes.setdefault(tensor.input, {})
        for axis in tensor.growing:
            if axis not in of_input and axis - tensor.example.dim() not in of_input:
                length = tensor.example.shape[axis]
                symbol = lengths.setdefault(length, f"{PAST}{len(lengths) or ''}")
                of_input[axis] = SizeFrom(symbol, 0)
    return {name: axes for name, axes in all_axes.items() if axes}


def _sizes(axes: Any, name: str) -> Mapping[int, Any]:
    """Return sizes by axis; a plain list of axes gets a symbol for each."""
    return axes if isinstance(axes, Mapping) else {axis: f"{name}_dim{axis}" for axis in axes}
