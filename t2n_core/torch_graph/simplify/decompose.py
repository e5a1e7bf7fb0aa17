"""Decompose an operator without a rule into smaller operators: by our own decompositions, otherwise by PyTorch's table.

The decomposition is traced on the operator's fake tensors, so that symbolic sizes stay symbolic; the caller looks up
its steps again. The cost depends on the operator, not on the model.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import torch

from t2n_core.errors import CaptureError
from t2n_core.nnef.shapes import check_shape
from t2n_core.nnef.sizes.dims import FloorDiv, Modulo, shape_text
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.arguments import replace_sizes
from t2n_core.torch_graph.compat.patches import swaps
from t2n_core.torch_graph.compat.private import DispatchKey, FakeTensorMode, OpOverload, make_fx
from t2n_core.torch_graph.compat.quiet import quiet
from t2n_core.torch_graph.constraints.dynamic_axes import SymbolTable
from t2n_core.torch_graph.constraints.guards import Decisions
from t2n_core.torch_graph.constraints.narrowing import narrow_range, with_user_symbols
from t2n_core.torch_graph.graph.fx_nodes import NodeReader
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchOp, replace_tensors
from t2n_core.torch_graph.overrides.pools import pools_of_any_size
from t2n_core.torch_graph.simplify import decompositions

_LOG = logging.getLogger(__name__)

_SHAPES_ALONE = frozenset(
    {"_reshape_view_helper", "_collapse_view_helper", "linalg_solve_is_vector_rhs", "linalg_solve_ex_meta"}
)
"""Functions of PyTorch that branch on sizes to compute a shape; a wrong shape of a result is detected later."""

Expansion = tuple[list[TorchOp], list["TensorVariable | None"]]


@functools.cache
def _table() -> dict[Any, Callable[..., Any]]:
    """Return PyTorch's decompositions: those to core ATen, and for other operators those to primitives."""
    from t2n_core.torch_graph.compat.private import core_aten_decompositions, decomposition_table

    return {**decomposition_table, **core_aten_decompositions()}


def decompose(op: TorchOp, table: SymbolTable, other_body: Callable[..., Any] | None = None) -> Expansion | None:
    """Return the steps of `op` and the tensors that replace its results; None if there is no decomposition.

    `op.refusal` then holds the reason, if a decomposition refused. `other_body` takes precedence over all
    decompositions, and may use the operator itself.
    """
    body = other_body or _body(op.op_ref)
    if body is None:
        return None
    expansion = expand(op, table, body, op.inputs)
    if expansion is None:
        return None
    steps, results = expansion
    _LOG.debug("decomposition of %s into %d operators", op.kind, len(steps))
    if other_body is None and len(steps) == 1 and steps[0].op_ref is op.op_ref:  # a decomposition into itself
        return None
    op.refusal = _other_shape(op, results)
    return None if op.refusal else expansion


def _other_shape(op: TorchOp, results: Sequence[TensorVariable | None]) -> str:
    """Return why a decomposition holds only for the traced sizes; empty if its results have the captured shapes."""
    for captured, result in zip(op.outputs, results, strict=True):
        if captured is not None and result is not None and not check_shape(result.shape, captured.shape):
            shapes = f"its result is {shape_text(result.shape)}, not {shape_text(captured.shape)}"
            return f"the decomposition of {op.kind} decides by a size: {shapes}"
    return ""


def expand(
    op: TorchOp,
    table: SymbolTable,
    body: Callable[..., Any],
    inputs: Sequence[TensorVariable],
    join: Callable[[Iterable[torch.Tensor]], Iterable[Any]] = iter,
) -> Expansion | None:
    """Return the steps of `body`, called with the arguments of `op`. None if it refuses; `op.refusal` is the reason.

    `join` converts `inputs` into the objects that replace the tensors among the arguments.
    """
    mode = table.fake_mode or FakeTensorMode()
    fakes = [_fake(v, mode) for v in inputs]
    symbols = sorted(table.symints)
    # base symbols enter as the shape of an extra input: the tracer knows sizes only if it saw where they come from
    size_source = (
        mode.from_tensor(torch.empty(0)) if not symbols else _size_source(mode, [table.symints[s] for s in symbols])
    )

    def call(size_source: torch.Tensor, *tensors: torch.Tensor) -> Any:
        sizes = dict(zip(symbols, size_source.shape, strict=False))
        supply = iter(join(tensors))
        arguments = {
            name: replace_sizes(replace_tensors(argument, lambda _: next(supply)), lambda size: _symint(size, sizes))
            for name, argument in op.arguments.items()
        }
        schema = op.op_ref._schema.arguments
        positional = [arguments[a.name] for a in schema if not a.kwarg_only]
        keywords = {a.name: arguments[a.name] for a in schema if a.kwarg_only and arguments[a.name] != a.default_value}
        return body(*positional, **keywords)

    decisions = Decisions(_SHAPES_ALONE)
    try:
        with swaps() as swap:
            decisions.record(swap)
            traced = _trace(call, size_source, *fakes)
    except decompositions.Refusal as reason:
        op.refusal = str(reason)
        return None
    holds_for = _range_of(decisions, table)
    if holds_for != table.range:
        op.refusal = f"the decomposition of {op.kind} decides by a size, and holds only for {holds_for}"
        return None
    if any(isinstance(n.target, OpOverload) and n.target._schema.is_mutable for n in traced.graph.nodes):
        traced = _trace(torch.func.functionalize(call), size_source, *fakes)
    return _read(traced, op, inputs, table)


def _range_of(decisions: Decisions, table: SymbolTable) -> SizeRange:
    """Return the part of the range in which decisions of a decomposition hold."""
    captured = {name: cast("int", size.node.hint) for name, size in table.symints.items()}
    return narrow_range(table.range, with_user_symbols(decisions.all(), table), captured, lambda *_: False)[0]


def _body(target: OpOverload) -> Callable[..., Any] | None:
    composite = target.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd)
    return decompositions.find(target) or (target.decompose if composite else _table().get(target))


def _trace(call: Callable[..., Any], *fakes: torch.Tensor) -> torch.fx.GraphModule:
    with quiet(), pools_of_any_size(), torch.no_grad():
        return make_fx(call, tracing_mode="symbolic", _allow_non_fake_inputs=True)(*fakes)


def _read(traced: torch.fx.GraphModule, op: TorchOp, inputs: Sequence[TensorVariable], table: SymbolTable) -> Expansion:
    reader = NodeReader(table, op.origin)
    placeholders = [n for n in traced.graph.nodes if n.op == "placeholder"]
    for node, variable in zip(placeholders[1:], inputs, strict=True):
        reader.env[node.name] = variable
    for node in traced.graph.nodes:
        if node.op == "call_function":
            reader.read(node)
        elif node.op == "get_attr":
            data = getattr(traced, str(node.target))
            data = data.constant if hasattr(data, "fake_mode") else data
            if data is None:
                raise CaptureError(f"the decomposition of {op.kind} holds a tensor constant", origin=op.origin)
            reader.env[node.name] = TensorVariable(str(node.target), data)
        elif node.op == "output":
            outputs = reader.resolve(node.args[0])
            results = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    for step in reader.ops:
        step.scope = op.scope
    return reader.ops, results


def _fake(variable: TensorVariable, mode: FakeTensorMode) -> torch.Tensor:
    if variable.fake is None and variable.data is not None:
        variable.fake = mode.from_tensor(variable.data, static_shapes=True)
    if variable.fake is None:
        raise RuntimeError(f"{variable.name} has neither data nor a fake tensor")
    return variable.fake


def _size_source(mode: FakeTensorMode, sizes: list[torch.SymInt]) -> torch.Tensor:
    with mode:
        return torch.empty(sizes)


def _symint(e: Any, sizes: dict[str, Any]) -> Any:
    if e.is_Symbol:
        return sizes[e.name]
    if e.is_Integer:
        return int(e)
    parts = [_symint(a, sizes) for a in e.args]
    if isinstance(e, FloorDiv):
        return parts[0] // parts[1]
    if isinstance(e, Modulo):
        return parts[0] % parts[1]
    combine = {"Add": lambda a, b: a + b, "Mul": lambda a, b: a * b, "Pow": lambda a, b: a**b}
    kind = type(e).__name__
    if kind == "Max":
        return functools.reduce(torch.sym_max, parts)
    if kind == "Min":
        return functools.reduce(torch.sym_min, parts)
    return functools.reduce(combine[kind], parts)
