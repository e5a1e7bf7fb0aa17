"""Read a node of an FX graph as a TorchOp: arguments bound by schema name, sizes turned into expressions."""

from __future__ import annotations

import operator
from typing import Any

import torch

from t2n_core.errors import CaptureError, Origin
from t2n_core.torch_graph import naming
from t2n_core.torch_graph.arguments import bind_schema
from t2n_core.torch_graph.compat.operators import operator as find_operator
from t2n_core.torch_graph.compat.private import OpOverload
from t2n_core.torch_graph.constraints.counts import ARANGES, decide_count
from t2n_core.torch_graph.constraints.dynamic_axes import SymbolTable
from t2n_core.torch_graph.constraints.slices import SLICES, decide_length
from t2n_core.torch_graph.custom_ops.definition import aten_equivalent
from t2n_core.torch_graph.custom_ops.module_calls import MODULE_CALL, calls
from t2n_core.torch_graph.graph.data import FixedTensorList
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchOp

_SCALAR = find_operator("aten::scalar_tensor.default")
SIZES = (torch.SymInt, torch.SymBool, torch.SymFloat, int, float, bool)


class NodeReader:
    """Reads call_function nodes in order; `env` maps node names to their values in our graph."""

    def __init__(self, table: SymbolTable, origin: Origin | None = None) -> None:
        self.table = table
        self.origin = origin
        """Origin of the steps of a decomposition: the operator that was decomposed. None for a captured program."""
        self.env: dict[str, Any] = {}
        self.ops: list[TorchOp] = []

    def read(self, node: torch.fx.Node) -> None:
        """Add a node to the graph. Raises CaptureError for a call that is not a torch operator."""
        value, target = node.meta.get("val"), node.target
        if isinstance(value, SIZES):
            self.env[node.name] = value  # translated on use: an unused one may depend on data
            return
        if target is operator.getitem:
            source: Any = self.resolve(node.args[0])
            self.env[node.name] = source[node.args[1]]
            return
        if isinstance(target, type) and issubclass(target, tuple):  # a named tuple of results, as from `var_mean`
            fields = node.args[0] if isinstance(node.args[0], list | tuple) else node.args
            self.env[node.name] = self.resolve(list(fields))
            return
        if not isinstance(target, OpOverload):
            raise CaptureError(f"a call of {target} is no torch operator", origin=self._origin(str(target), node))
        if value is None:  # an assertion about sizes or values
            return
        target = aten_equivalent(target)
        try:
            self._read_operator(node, target, value)
        except CaptureError as wrong:
            wrong.origin = wrong.origin or self._origin(naming.kind_of(target), node)
            raise

    def _read_operator(self, node: torch.fx.Node, target: Any, value: Any) -> None:
        kind = naming.kind_of(target)
        begin = None
        if kind in ARANGES:
            decide_count(self.table, bind_schema(target, node.args, node.kwargs), value.shape[0])
        if kind in SLICES:
            bound = bind_schema(target, node.args, node.kwargs)
            begin = decide_length(self.table, bound, value.shape[bound["dim"]])
        results = self._results(node, value)
        arguments = bind_schema(target, self.resolve(list(node.args)), self.resolve(dict(node.kwargs)))
        if begin is not None:
            arguments["start"] = begin
        if kind == MODULE_CALL:
            arguments["key"] = calls[arguments["key"]]
            kind = arguments["key"].writer.kind
        if _is_useless(kind, arguments, value):
            self.env[node.name] = arguments["input" if "input" in arguments else "self"]
            return
        op = TorchOp(
            kind,
            outputs=results,
            scope=node.name,
            op_ref=target,
            arguments=arguments,
            origin=self._origin(kind, node),
            returns_list=isinstance(value, list),
        )
        for result in results:
            if result is not None:
                result.producer = op
        self.ops.append(op)
        self.env[node.name] = results[0] if isinstance(value, torch.Tensor) else FixedTensorList(results)

    def _origin(self, kind: str, node: torch.fx.Node) -> Origin:
        return self.origin or naming.origin_of(kind, node.meta)

    def _results(self, node: torch.fx.Node, value: Any) -> tuple[TensorVariable | None, ...]:
        if isinstance(value, torch.Tensor):
            return (self.variable(node.name, value),)
        if any(isinstance(v, list | tuple) for v in value):
            raise CaptureError(
                f"{node.target} gives lists among its results, which cannot be expressed in a graph",
                origin=self._origin(str(node.target), node),
            )
        return tuple(None if v is None else self.variable(f"{node.name}_{i}", v) for i, v in enumerate(value))

    def variable(self, name: str, fake: torch.Tensor) -> TensorVariable:
        return TensorVariable(name, None, tuple(self.table.dim(s) for s in fake.shape), fake.dtype, fake=fake)

    def number(self, name: str, value: Any, dtype: torch.dtype) -> TensorVariable:
        """Return a Python number or a symbolic one as a tensor without axes."""
        arguments = bind_schema(_SCALAR, (self.resolve(value),), {"dtype": dtype})
        result = self.variable(name, torch.empty((), dtype=dtype, device="meta"))
        result.producer = TorchOp(naming.kind_of(_SCALAR), "", (), (result,), name, _SCALAR, arguments=arguments)
        self.ops.append(result.producer)
        return result

    def resolve(self, argument: Any) -> Any:
        """Return an FX argument with nodes replaced by their values."""
        if isinstance(argument, torch.fx.Node):
            argument = self.env[argument.name]
        if isinstance(argument, list | tuple):
            items = [self.resolve(a) for a in argument]
            return FixedTensorList(items) if any(isinstance(i, TensorVariable) for i in items) else items
        if isinstance(argument, dict):
            return {k: self.resolve(v) for k, v in argument.items()}
        return self.table.dim(argument) if isinstance(argument, torch.SymInt) else argument


_SAME = frozenset({"aten::detach", "aten::detach_", "aten::alias", "aten::lift_fresh_copy"})
_COPIES = frozenset({"clone", "contiguous", "to", "_to_copy"})
"""Operators, without namespace and overload, that copy a tensor, to another device, dtype or memory format too."""
_DROPOUTS = frozenset(f"aten::{name}dropout" for name in ("", "feature_", "alpha_", "feature_alpha_"))


def _is_useless(kind: str, arguments: dict[str, Any], value: Any) -> bool:
    """Return whether a node returns its argument: copies of the same dtype and strides, and dropout in evaluation."""
    if kind in _DROPOUTS:
        return not arguments["train"] or arguments["p"] == 0
    if kind.removeprefix("aten::").partition(".")[0] in _COPIES:
        source = arguments["self"]
        fake = source.fake if isinstance(source, TensorVariable) else None
        return fake is not None and fake.dtype == value.dtype and repr(fake.stride()) == repr(value.stride())
    return kind in _SAME and isinstance(arguments["self"], TensorVariable)
