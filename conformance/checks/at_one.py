"""The variation `traced at 1`: the example of a case cut to one row or step, as users often give it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from t2n_core import ModelExport
from t2n_core.errors import T2NError
from t2n_core.torch_graph.frontend.inputs import bind_inputs
from t2n_core.torch_graph.frontend.sources import source_of

Axes = Mapping[str, Mapping[int, str]]


def cut_to_one(inputs: Mapping[str, Any], axes: Axes, symbols: Sequence[str]) -> dict[str, Any]:
    """Return the inputs with only the first element along every axis of these symbols."""
    cut: dict[str, Any] = {}
    for name, value in inputs.items():
        for axis, symbol in axes.get(name, {}).items():
            if symbol in symbols and isinstance(value, Tensor):
                value = value.narrow(axis, 0, 1)
        cut[name] = value.clone(memory_format=torch.contiguous_format) if isinstance(value, Tensor) else value
    return cut


def symbols_at_one(
    model: nn.Module, inputs: Mapping[str, Any], axes: Axes, input_names: Sequence[str] | None = None
) -> list[str]:
    """Return as many symbols as can be 1 together in PyTorch, in the order in which they are declared."""
    source = source_of(model)
    at_one: list[str] = []
    for symbol in dict.fromkeys(symbol for of in axes.values() for symbol in of.values()):
        try:
            call = bind_inputs(source, cut_to_one(inputs, axes, [*at_one, symbol]), input_names=input_names)
            with torch.no_grad():
                source.run(call.args, call.kwargs)
        except Exception:
            continue
        at_one.append(symbol)
    return at_one


def export_at_one(model: nn.Module, inputs: Mapping[str, Any], axes: Axes, **options: Any) -> ModelExport:
    """From an example that is cut to 1 wherever PyTorch's model runs there; the whole example is checked as well.

    It is not where a decision of the model keeps the archive from it. Raises ValueError if the model never takes a 1.
    """
    symbols = symbols_at_one(model, inputs, axes, options.get("input_names"))
    if not symbols:
        raise ValueError("no dynamic axis of this case can be 1")
    export = ModelExport(model, cut_to_one(inputs, axes, symbols), dynamic_axes=axes, **options)
    full_sizes = {symbol: inputs[name].shape[axis] for name, of in axes.items() for axis, symbol in of.items()}
    try:
        in_range = export.captured.range.holds(full_sizes)
    except T2NError:
        return export  # what is refused is refused again, as the outcome of a cell
    export.extra_inputs = [inputs] if in_range else []
    return export


def in_rows(inputs: Mapping[str, Any], axes: Axes, symbols: Sequence[str], count: int) -> dict[str, Any]:
    """Return the inputs with `count` elements along every axis of these symbols: their own repeated, floats varied."""
    random = torch.Generator().manual_seed(count)
    inputs_in_rows: dict[str, Any] = {}
    for name, value in inputs.items():
        for axis, symbol in axes.get(name, {}).items():
            if symbol in symbols and isinstance(value, Tensor):
                indices = torch.arange(count) % value.shape[axis]
                value = value.index_select(axis, indices)
                if value.is_floating_point():  # no two elements alike
                    shape = [count if a == axis else 1 for a in range(value.dim())]
                    value = value * (1 + 0.2 * torch.rand(shape, generator=random))
        inputs_in_rows[name] = value
    return inputs_in_rows
