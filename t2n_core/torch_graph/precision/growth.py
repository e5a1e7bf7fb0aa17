"""Find the units that compute with values that grow with a size, which no run at the example's size shows.

Positions, lengths, indices and running sums are such values, and their products with constants, such as the angles of
rotary embeddings. float16 counts to 2048 only: beyond it neighbours become equal; sines of angles are wrong earlier.
Sums over an axis are left out: their relative error does not grow. Where a periodic function, or a rounding, reads a
value that grows, its absolute error counts: then all that the value is computed from stays float32 too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

import sympy
import torch

from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph, TorchOp
from t2n_core.torch_graph.precision.units import Unit, name_of, unit_of

_COUNTS_TO: Final = 2048
"""The last integer up to which float16 has all of them."""
_VALUES: Final = frozenset({"alpha", "end", "exponent", "fill_value", "other", "s", "value"})
"""Arguments that set values, where others are sizes and places."""
_INDICES: Final = frozenset({"argmax", "argmin", "argsort", "nonzero", "searchsorted", "sort", "topk"})
_RUNNING: Final = frozenset({"cumsum", "cumprod"})
_OF_FIRST: Final = frozenset({"embedding", "gather", "index", "index_select", "take", "take_along_dim"})
"""Operators whose first tensor alone is the source of their values: the others are indices."""
_BOUNDED: Final = frozenset(
    "acos asin atan atan2 clamp clamp_max cos cosine_similarity erf erfc exp2 fmod frac hardsigmoid hardtanh log log10 "
    "log1p log2 log_softmax logsigmoid remainder sigmoid sign sin sinc softmax tan tanh".split()
)
"""Operators whose results do not grow with their operands, or far more slowly."""
_PERIODIC: Final = frozenset("ceil cos floor fmod frac remainder round sin sinc tan trunc".split())
_NORMS: Final = ("layer_norm", "group_norm", "instance_norm", "rms_norm", "native_layer_norm", "batch_norm")


def growing_units(graph: TorchModuleIRGraph, symbols: Collection[str]) -> dict[Unit, str]:
    """Return the units that read or compute float values which grow with one of these symbols, each with the reason."""
    if not symbols:
        return {}
    grows = {id(v) for v in graph.inputs if v.dtype in (torch.int32, torch.int64)}
    reasons: dict[Unit, str] = {}
    names = ", ".join(sorted(symbols))
    for op in graph.op_nodes:
        reads = any(id(v) in grows and v.dtype is not torch.bool for v in _sources(op))
        results = [o for o in op.outputs if o is not None and o.dtype is not torch.bool]
        growing = [o for o in results if _may_grow(op, o, reads, grows, symbols)]
        grows.update(map(id, growing))
        unit = unit_of(op)
        if unit is not None and (reads or growing):
            reasons.setdefault(unit, f"values that grow with {names}")
    for unit in _units_before_periods(graph, grows):
        reasons.setdefault(unit, f"errors that grow with {names}")
    return reasons


def _units_before_periods(graph: TorchModuleIRGraph, grows: Collection[int]) -> Iterator[Unit]:
    """Yield the units that compute what a periodic function of a value that grows depends on."""
    needed: set[int] = set()
    for op in reversed(graph.op_nodes):
        is_needed = any(id(o) in needed for o in op.outputs)
        unit = unit_of(op)
        if is_needed and unit is not None:
            yield unit
        for value in _sources(op):
            if is_needed or (name_of(op.kind) in _PERIODIC and id(value) in grows):
                needed.add(id(value))


def notes_of_growth(
    graph: TorchModuleIRGraph, is_half: Callable[[Unit], bool], sizes: SizeRange, symbols: Collection[str]
) -> list[str]:
    """Return a line on the units that a plan computes in float16, although float16 cannot count to their values."""
    beyond = unbounded(sizes, dict.fromkeys(symbols, _COUNTS_TO))
    half = sorted({name for module, name in growing_units(graph, beyond) if is_half((module, name))})
    if not half:
        return []
    names = ", ".join(sorted(beyond))
    problem = f"{', '.join(half)} with values that grow with {names} in float16, which counts to {_COUNTS_TO}"
    where = f"positions are wrong from {names} = {_COUNTS_TO + 1} on, and products with them, such as angles, earlier"
    hint = "keep them in float32, as precision='auto' does, or declare a maximum"
    return [f"precision: {problem}: {where}; {hint}"]


def unbounded(sizes: SizeRange, symbols: Mapping[str, int]) -> set[str]:
    """Return the symbols whose range goes beyond these sizes."""
    highs = {name: sizes.bounds[name][1] if name in sizes.bounds else None for name in symbols}
    return {name for name, size in symbols.items() if (high := highs[name]) is None or high > size}


def _sources(op: TorchOp) -> list[TensorVariable]:
    return list(op.inputs)[:1] if name_of(op.kind) in _OF_FIRST else list(op.inputs)


def _may_grow(
    op: TorchOp, result: TensorVariable, reads: bool, grows: Collection[int], symbols: Collection[str]
) -> bool:
    """Return whether a result may grow with a symbol."""
    name = name_of(op.kind)
    if name in _BOUNDED or any(norm in name for norm in _NORMS):
        return False
    if name == "div":
        other = op.arguments.get("other")
        is_by_size = _has_symbol(other, symbols) or (isinstance(other, TensorVariable) and id(other) in grows)
        return reads and not is_by_size
    if name in _INDICES and not result.dtype.is_floating_point:
        return any(_has_symbol(extent, symbols) for extent in _indexed(op))
    if name == "sum" and not result.dtype.is_floating_point:  # a length, as the sum of a mask
        extents = {extent for extent in result.shape or () if not isinstance(extent, int)}
        return reads or any(_has_symbol(e, symbols) and e not in extents for v in op.inputs for e in v.shape or ())
    if name in _RUNNING and result.shape:
        return reads or _has_symbol(result.shape[op.arguments["dim"]], symbols)
    return reads or any(_has_symbol(op.arguments.get(key), symbols) for key in _VALUES if _is_value(op, key))


def _indexed(op: TorchOp) -> Iterator[Any]:
    """Yield the extents of the axes whose places an operator returns: only `dim`'s, or all."""
    dim = op.arguments.get("dim")
    for value in op.inputs:
        shape = value.shape or ()
        yield from shape if dim is None or not shape else (shape[dim],)


def _is_value(op: TorchOp, argument: str) -> bool:
    """Return whether an argument sets values: `end` is the end of a range, and otherwise a place in an axis."""
    return argument != "end" or name_of(op.kind) in ("arange", "linspace", "logspace")


def _has_symbol(value: Any, symbols: Collection[str]) -> bool:
    return isinstance(value, sympy.Expr) and any(str(symbol) in symbols for symbol in value.free_symbols)
