"""Choose one long size for each dynamic axis along which errors or costs grow, within a budget of work."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from t2n_core.check.sampling.code_sizes import largest
from t2n_core.nnef.graph import Graph
from t2n_core.nnef.sizes.dims import Dim, evaluate, symbols_of
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.op.growing import LOOPING, ORDERING, RUNNING, growing_operators
from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph, TorchOp
from t2n_core.torch_graph.precision.units import name_of

LONG: Final = 100_000
"""The long size of an axis without a declared maximum."""
_MOST: Final = 1 << 23
_MOST_OF_REDUCTIONS: Final = 1 << 20
"""Most elements that a model may compute at a long size; fewer for reductions, whose errors hardly grow."""
_PRODUCTS: Final = 8
"""Multiplications and additions of a matrix product that take as long as an element of other operators."""
_PRODUCTS_OF_ROWS: Final = frozenset("bmm linear matmul mm mv".split())
_SCAN: Final = "tract_core_scan"
_STEP: Final = 1 << 10
"""Elements that take as long as a step of a loop, in PyTorch or an engine."""
_NEAR: Final = 64
"""Sizes below the wanted size that are tried until one is in the range."""


@dataclass(frozen=True, slots=True)
class LongSize:
    """A long size of one symbol."""

    symbol: str
    size: int | None
    """None if a size that is longer than the usual ones costs too much, or is out of the range."""
    wanted: int
    """The declared maximum, or `LONG`."""
    operators: tuple[str, ...]

    def is_of(self, sizes: Mapping[str, int], symbols: Mapping[str, int]) -> bool:
        """Return whether these are the sizes of its sample; `symbols` are the example's sizes."""
        return self.size is not None and dict(sizes) == {**symbols, self.symbol: self.size}

    def describe(self, left_out: str = "") -> str:
        """Return a line for the record; `left_out` is the reason why there is no sample of this size."""
        why = ", ".join(self.operators)
        if self.size is None:
            return f"no long {self.symbol}, for time and memory ({why})"
        if left_out:
            return f"not {self.symbol} = {self.size}, since {left_out} ({why})"
        cut = f" of {self.wanted}, for time and memory" if self.size < self.wanted - _NEAR else ""
        return f"{self.symbol} = {self.size}{cut} ({why})"


def long_sizes(
    captured: TorchModuleIRGraph, written: Graph, valid_range: SizeRange, symbols: Mapping[str, int]
) -> list[LongSize]:
    """Return a long size of each symbol that grows what an operator computes.

    `written` is the graph for an engine, which may hold larger tensors than the captured one; `symbols` are the sizes
    of the example.
    """
    choices = []
    for symbol, operators in sorted(growing_operators(captured, valid_range, symbols).items()):
        high = valid_range.bounds[symbol][1] if symbol in valid_range.bounds else None
        target_size = LONG if high is None else high
        if target_size <= largest(symbols[symbol]):
            continue  # the usual sizes have it
        most = _MOST if operators & {*RUNNING, *ORDERING, "positions"} else _MOST_OF_REDUCTIONS
        size = target_size
        while size > largest(symbols[symbol]) and _work(captured, written, {**symbols, symbol: size}) > most:
            size //= 2
        near = range(size, max(size - _NEAR, largest(symbols[symbol])), -1)
        allowed = next((candidate for candidate in near if valid_range.holds({**symbols, symbol: candidate})), None)
        choices.append(LongSize(symbol, allowed, target_size, tuple(sorted(operators))))
    return choices


def _work(captured: TorchModuleIRGraph, written: Graph, sizes: Mapping[str, int]) -> float:
    """Return the number of elements that an engine computes at these sizes, with products and steps as elements."""
    sizes = {**_sizes_of_inputs(captured, written, sizes), **sizes}

    def count(shape: Sequence[Dim]) -> int:
        return math.prod(evaluate(extent, sizes) for extent in shape)

    elements = sum(count(value.shape) for operation in written.operations for value in operation.outputs)
    looped = [
        value.shape for operation in written.operations if operation.name == _SCAN for value in operation.outputs[:1]
    ]
    looped += [op.inputs[0].shape for op in captured.op_nodes if name_of(op.kind) in LOOPING]
    steps = sum(max((evaluate(extent, sizes) for extent in shape), default=0) for shape in looped)
    products = sum(_inner(op, count) * count(o.shape) for op in captured.op_nodes for o in op.outputs[:1] if o)
    return elements + steps * _STEP + products / _PRODUCTS


def _sizes_of_inputs(captured: TorchModuleIRGraph, written: Graph, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of symbols that a written graph has for axes of its inputs, such as multiples of a symbol."""
    return {
        str(symbol): evaluate(extent, sizes)
        for value, written_input in zip(captured.inputs, written.inputs, strict=True)
        for extent, symbol in zip(value.shape, written_input.shape, strict=True)
        if str(symbol) in symbols_of([symbol])
    }


def _inner(op: TorchOp, count: Callable[[Sequence[Dim]], int]) -> int:
    """Return how many products an element of a result adds up; 0 for an operator that is no matrix product."""
    name, tensors = name_of(op.kind), op.inputs
    if name in _PRODUCTS_OF_ROWS and tensors[0].shape:
        return count(tensors[0].shape[-1:])
    if name.startswith("conv") and len(tensors) > 1:
        return count(tensors[1].shape[1:])
    if name == "scaled_dot_product_attention":
        return 2 * count(tensors[1].shape[-2:-1])
    return 0
