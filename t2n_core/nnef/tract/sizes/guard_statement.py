"""The guard of a range as an operation: it fails for sizes out of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import sympy

from t2n_core.errors import LowerError
from t2n_core.nnef.arguments import replace_values
from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.graph import FLOAT32, Graph, Operation, Value, new_operation
from t2n_core.nnef.sizes.dims import Dim, FloorDiv, as_dim, evaluate, product, symbols_of
from t2n_core.nnef.sizes.range_names import NODE
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.constants import BARRIER
from t2n_core.nnef.tract.sizes.arithmetic import without_extremes
from t2n_core.nnef.tract.sizes.guards import excesses
from t2n_core.nnef.tract.sizes.printer import size_text
from t2n_core.nnef.tract.traits import first_release
from t2n_core.nnef.tract.unstreamable import may_be_streamed

_TYPICAL = 64
"""The size of dynamic axes at which the smallest tensor is searched."""
_UNCHANGING: Final = frozenset({"tract_core_shape_of", "concat"})
"""Operators that compute with no element: a cache is only joined with new elements, which the engine recognises."""
_REDUCED = frozenset({"sum_reduce", "mean_reduce", "max_reduce", "min_reduce"})
_EXPERTS: Final = "tract_moe_ffn"
_SCAN: Final = "tract_core_scan"


def is_by_statement(g: TractBuilder, scenario_conditions: Sequence[Any]) -> bool:
    """Return whether a statement guards the range of the finished graph, rather than scenarios.

    `scenario_conditions` are conditions on the graph's own symbols, which scenarios alone check.
    """
    if not g.traits.checks_scenarios:
        return True
    if scenario_conditions or not g.graph.sizes.relations():
        return False
    if _repeated(g) is None and not _is_faster(g):
        return False
    try:
        _excesses(g)
    except ValueError:
        return False
    return True


def guard(g: TractBuilder, by_statement: bool) -> None:
    """Make the finished graph fail for sizes out of its range, if a statement is what guards it.

    An output depends on the guard, so that its failure fails the whole run. Raises LowerError for a range that this
    release cannot check.
    """
    graph, traits = g.graph, g.traits
    if g.options.streaming or graph.sizes.unbounded:
        return
    needed = traits.checks_scenarios or graph.sizes.restricted or not _is_empty_at_zero(graph)
    graph.guarded = needed and traits.slices_by_sizes
    if not by_statement or not needed:
        return
    if not traits.slices_by_sizes:
        if graph.sizes.restricted:
            raise LowerError(
                f"{g.spec} cannot check that sizes are in the range {graph.sizes}",
                hint=f"{first_release('slices_by_sizes')} can",
            )
        return
    _require_solvable(g)
    zeros = _Zeros(g)
    for value in sorted(_guarded_values(g), key=lambda value: _position(graph, value)):
        first = len(graph.operations)
        guarded = _add_guard(g, value, zeros.of_rank(max(value.rank, zeros.least_rank)))
        operations = graph.operations[first:]
        del graph.operations[first:]
        _replace_uses(g, value, guarded)
        at = _position(graph, value) + 1
        graph.operations[at:at] = operations


def _position(graph: Graph, value: Value) -> int:
    """Return the index of the operation that produces a value."""
    return next(index for index, operation in enumerate(graph.operations) if operation is value.producer)


def _is_empty_at_zero(graph: Graph) -> bool:
    """Return whether all outputs are empty if any of the sizes is 0, so that no element can be wrong there.

    An extent divided by such a size has no value.
    """
    at_one = dict.fromkeys(graph.sizes.names, 1)
    points = [{**at_one, name: 0} for name in graph.sizes.names]
    try:
        return all(evaluate(product(output.shape), point) == 0 for output in graph.outputs for point in points)
    except ZeroDivisionError:
        return False


def _require_solvable(g: TractBuilder) -> None:
    """Raise LowerError if the engine cannot infer the value of a symbol."""
    if g.traits.solves_sums:
        return
    extents = [extent for value in g.graph.inputs for extent in value.shape if not isinstance(extent, int)]
    solved = symbols_of(extent for extent in extents if extent.as_coeff_Mul()[1].is_Symbol)
    for name in sorted(set(g.graph.sizes.names) - solved):
        holders = ", ".join(str(extent) for extent in extents if name in symbols_of([extent]))
        raise LowerError(
            f"{g.spec} does not find {name} from an axis of {holders}",
            hint=f"give an input with an axis of {name}, or of a multiple of it; tract {first_release('solves_sums')} "
            "needs none",
        )


def _is_faster(g: TractBuilder) -> bool:
    """Return whether the archive loads faster with a statement than with scenarios: with several sizes.

    A size that is simplified but once is not always equal to the same one, expanded: such archives would not load.
    """
    graph = g.graph
    if not g.traits.simplifies_for_scenarios or graph.sizes.scenarios or len(graph.sizes.names) < 2:
        return False
    sizes = {size for operation in graph.operations for value in operation.outputs for size in value.shape}
    return bool(_smallest_inputs(graph)) and not _may_be_streamed(graph) and not any(map(_is_expanded, sizes))


def _is_expanded(size: Dim) -> bool:
    """Return whether the engine expands a size: a product of several sums, or of a sum that contains a quotient."""
    if isinstance(size, int):
        return False
    sums = [factor for product in size.atoms(sympy.Mul) for factor in product.args if factor.is_Add]
    return len(sums) > 1 or any(factor.has(FloorDiv) for factor in sums)


def _may_be_streamed(graph: Graph) -> bool:
    """Return whether a user may run the graph as a stream, where sizes that operations read have no value.

    A leading axis is taken for a batch, unless all dynamic axes are leading ones.
    """
    leading = symbols_of(value.shape[0] for value in graph.inputs if value.shape)
    names = graph.sizes.names
    return any(may_be_streamed(graph, name) for name in [name for name in names if name not in leading] or names)


def _repeated(g: TractBuilder) -> Operation | None:
    """Return the first operation that evaluates all scenarios again in each step or product, in this release."""
    of_steps = g.traits.checks_scenarios_in_steps and len(g.graph.sizes.names) > 1
    for operation in g.graph.operations:
        if operation.name == _EXPERTS and g.traits.checks_scenarios_in_experts:
            return operation
        if operation.name == _SCAN and of_steps and _sizes_of_a_step(operation):
            return operation
    return None


def _sizes_of_a_step(scan: Operation) -> set[str]:
    """Return the symbols whose values the body of a loop takes from its operands."""
    arguments = scan.arguments
    full_shapes = [value.shape for _, value, *_ in (*arguments["full"], *arguments["state"])]
    chunks = [(*value.shape[:axis], *value.shape[axis + 1 :]) for _, value, axis, _ in arguments["scan"]]
    return symbols_of(extent for shape in (*full_shapes, *chunks) for extent in shape)


def _guarded_values(g: TractBuilder) -> list[Value]:
    """Return the values that the guard is added to.

    Where an operation would evaluate scenarios again and again, it is the first operand of that one: the engine then
    refuses before it, and no reduction of a norm is changed, which would no longer be recognised. Otherwise, in
    releases that have scenarios, these are inputs, so that the engine refuses before it sees an empty axis, of which
    some operations die, and the smallest output that is no cache, since the engine drops inputs that are multiplied by
    0. In older releases it is the smallest of the outputs and of the reductions that they depend on. float32 is
    preferred.
    """
    graph, repeated = g.graph, _repeated(g)
    if repeated is not None:
        return [next(repeated.inputs())]
    if g.traits.checks_scenarios:
        computed = [output for output in graph.outputs if output.producer and output.producer.name not in _UNCHANGING]
        return [*_smallest_inputs(graph), _smallest(graph, computed or graph.outputs)]
    sums = [
        operation.outputs[0]
        for operation in graph.operations
        if operation.name in _REDUCED and operation.outputs[0].dtype == FLOAT32
    ]
    return [_smallest(graph, [*graph.outputs, *sums])]


def _smallest(graph: Graph, values: Sequence[Value]) -> Value:
    return min(values, key=lambda value: (value.dtype != FLOAT32, _elements(graph, value)))


def _smallest_inputs(graph: Graph) -> list[Value]:
    """Return for each symbol the smallest of the inputs with an axis of it that operations compute with."""
    operations = (operation for operation in graph.operations if operation.name not in _UNCHANGING)
    read = {value for operation in operations for value in operation.inputs()} - set(graph.outputs)
    inputs = sorted((value for value in graph.inputs if value in read), key=lambda value: _elements(graph, value))
    holders = (next((v for v in inputs if name in symbols_of(v.shape)), None) for name in graph.sizes.names)
    return list(dict.fromkeys(holder for holder in holders if holder is not None))


def _elements(graph: Graph, value: Value) -> int:
    sizes = dict.fromkeys(graph.sizes.names, _TYPICAL)
    return math.prod(evaluate(extent, sizes) for extent in value.shape)


def _write(g: TractBuilder, operator: str, arguments: dict[str, Any], dtype: Any, rank: int) -> Value:
    """Append an operation as it is, without simplifications or another lowering."""
    value = Value(g.unique(f"{NODE}_{operator}"), np.dtype(dtype), (1,) * rank)
    g.graph.operations.append(new_operation(operator, arguments, value))
    return value


class _Zeros:
    """Tensors of a single -0.0, which the engine cannot compute for sizes out of the range.

    Adding one changes no element; +0.0 would turn -0.0 into 0.0.
    """

    def __init__(self, g: TractBuilder) -> None:
        self._g = g
        self.least_rank = 2 if g.traits.checks_scenarios else 1
        self._of_rank: dict[int, Value] = {}

    def of_rank(self, rank: int) -> Value:
        """Return the tensor of a rank."""
        if rank not in self._of_rank:
            label = f"nothing_in_range_{rank}" if self._of_rank else "nothing_in_range"
            zero = self._g.variable(label, ArrayWeight(np.full((1,) * rank, -0.0, np.float32)))
            self._of_rank[rank] = self._after_barrier(self._slice(zero))
        return self._of_rank[rank]

    @cached_property
    def _bounds(self) -> tuple[Any, Any]:
        """The first index of the slices, which is 0 in the range, and their end."""
        g = self._g
        try:
            excesses_of_range = _excesses(g)
        except ValueError as wrong:
            raise LowerError(
                f"{g.spec} cannot check that sizes are in the range {g.graph.sizes}", hint=str(wrong)
            ) from wrong
        if not g.traits.checks_scenarios:
            begin = as_dim(sympy.Add(*excesses_of_range))
            return begin, as_dim(begin + 1)  # the engine can prove that this is one element
        # Computed in the run, since the engine simplifies expressions in many passes. It adds sizes in 32 bits.
        each = _write(g, "stack", {"values": excesses_of_range, "axis": 0}, np.int64, 1)
        each = _write(g, "tract_core_cast", {"input": each, "to": "i64"}, np.int64, 1)
        return _write(g, "max_reduce", {"input": each, "axes": [0]}, np.int64, 1), 1

    def _slice(self, zero: Value) -> Value:
        g, (begin, end) = self._g, self._bounds
        if g.traits.reads_size_bounds:  # in these releases `slice` is clamped to the axis
            arguments = {"input": zero, "start": begin, "end": end, "len": 1, "axis": 0}
            return _write(g, "tract_core_dyn_slice", arguments, np.float32, zero.rank)
        return _write(g, "slice", {"input": zero, "axes": [0], "begin": [begin], "end": [end]}, np.float32, zero.rank)

    def _after_barrier(self, zero: Value) -> Value:
        """Return the slice after an operation that the engine moves no axes across.

        Releases that guard inputs would move a transpose from there through the slice to its bounds, and die of it.
        """
        if not self._g.traits.checks_scenarios:
            return zero
        diagonal = self._g.variable("nothing_below", ArrayWeight(np.asarray(-1, np.int64)))
        return _write(self._g, BARRIER, {"input": zero, "k": diagonal, "upper": True}, np.float32, zero.rank)


def _excesses(g: TractBuilder) -> list[sympy.Expr]:
    """Return sizes that are all 0 in the range. Raises ValueError if one cannot be written."""
    sizes = [as_dim(expression) for expression in excesses(g.graph.sizes, g.traits)]
    for size in sizes:
        size_text(size)
    return sizes if g.traits.has_extremes else [without_extremes(size) for size in sizes]


def _add_guard(g: TractBuilder, value: Value, nothing: Value) -> Value:
    """Return `value` plus the guard's value, which is cast to the dtype of `value`.

    It is a sum because the engine removes the other factor of a product with a constant 0, and with it the guard.
    """
    rank, dtype = value.rank, value.dtype
    if nothing.rank > rank:
        nothing = _write(g, "squeeze", {"input": nothing, "axes": list(range(nothing.rank - rank))}, np.float32, rank)
    if dtype.kind == "b":
        nothing = _write(g, "gt", {"x": nothing, "y": 0.5}, np.bool_, rank)
    elif dtype != FLOAT32:
        nothing = _write(g, "tract_core_cast", {"input": nothing, "to": g.type_name(dtype)}, dtype, rank)
    x, y = (nothing, value) if g.traits.wants_small_first else (value, nothing)
    guarded = _write(g, "or" if dtype.kind == "b" else "add", {"x": x, "y": y}, dtype, rank)
    guarded.shape = value.shape
    return guarded


def _replace_uses(g: TractBuilder, value: Value, guarded: Value) -> None:
    """Replace `value` by `guarded` in all operations and outputs."""
    for operation in g.graph.operations:
        operation.arguments = {
            name: replace_values(a, lambda v: guarded if v is value else v) for name, a in operation.arguments.items()
        }
    for index, output in enumerate(g.graph.outputs):
        if output is value:
            guarded.name, value.name = value.name, g.unique(f"{value.name}_unguarded")
            g.graph.outputs[index] = guarded
