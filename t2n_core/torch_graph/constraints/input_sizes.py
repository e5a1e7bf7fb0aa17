"""The sizes of the inputs: which symbol each has in a captured program, and which value in an example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.compat.private import detect_fake_mode
from t2n_core.torch_graph.constraints.capture_sizes import Axes
from t2n_core.torch_graph.constraints.declared_axes import AxisSize
from t2n_core.torch_graph.constraints.dynamic_axes import SymbolTable


def table_of(
    names: Sequence[str], is_program: bool, sizes: SizeRange, fakes: Sequence[torch.Tensor], axes: Axes
) -> SymbolTable:
    """Return the sizes of the inputs by name. `is_program` is true for a program exported elsewhere."""
    table = SymbolTable(sizes)
    table.fake_mode = detect_fake_mode(fakes)
    every: list[tuple[Any, AxisSize, bool]] = []
    for name, fake in zip(names, fakes, strict=True):
        declared = axes.get(name, {})
        free = {**(_free_axes(name, fake) if is_program else {}), **declared}
        every += [(fake.shape[axis], size, axis in declared) for axis, size in free.items()]
    for size, axis_size, is_declared in sorted(every, key=lambda entry: _is_tied(entry[0])):
        if not is_declared and table.name_of(size) is not None:
            continue  # free in a program exported elsewhere, and named by another input
        table.learn(size, axis_size)
    table.learn_replaced()
    return table


def sizes_in(
    names: Sequence[str], table: SymbolTable, fakes: Sequence[torch.Tensor], axes: Axes, tensors: Sequence[torch.Tensor]
) -> dict[str, int]:
    """Return symbol -> its size in these tensors."""
    by_symbol: dict[str, int] = {}
    for name, tensor, fake in zip(names, tensors, fakes, strict=True):
        for axis, size in enumerate(tensor.shape):
            symbol = table.name_of(fake.shape[axis])
            declared = axes.get(name, {}).get(axis) or (None if symbol is None else AxisSize(symbol))
            here = None if declared is None else declared.symbol_at(int(size))
            if declared is not None and here is not None:
                by_symbol[declared.name] = here
    return dict(sorted(by_symbol.items()))


def _is_tied(size: int | torch.SymInt) -> bool:
    """Return whether a size is computed from other sizes, which have to be known first."""
    return isinstance(size, torch.SymInt) and not size.node.expr.is_Symbol


def _free_axes(name: str, fake: torch.Tensor) -> dict[int, AxisSize]:
    """Return the axes that an exported program leaves free, named as if they were declared without a name."""
    free = [axis for axis, size in enumerate(fake.shape) if isinstance(size, torch.SymInt)]
    return {axis: AxisSize(f"{name}_dim{axis}") for axis in free}
