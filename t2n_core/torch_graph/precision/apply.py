"""Apply a plan: cast the inputs of operators in float16, and cast back where others read their results.

Inputs and outputs of the graph stay float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph, TorchOp, replace_tensors
from t2n_core.torch_graph.precision.units import MOVERS, Unit, name_of, unit_of

_TO_COPY = operator("aten::_to_copy.default")

F16, F32 = torch.float16, torch.float32
_LARGEST = torch.finfo(F16).max


def in_precision(graph: TorchModuleIRGraph, is_half: Callable[[Unit], bool]) -> TorchModuleIRGraph:
    """Return a simplified graph of new tensors in which the selected units compute in float16."""
    return _Rewriter(graph, is_half).run()


class _Rewriter:
    def __init__(self, graph: TorchModuleIRGraph, is_half: Callable[[Unit], bool]) -> None:
        self._graph, self._is_half = graph, is_half
        self._now: dict[int, TensorVariable] = {id(v): v for v in graph.inputs}
        """The new tensor of each old tensor that is computed."""
        self._casts: dict[tuple[int, torch.dtype], TensorVariable] = {}
        self._weights: dict[int, TensorVariable] = {}
        self._ops: list[TorchOp] = []
        self._labels: set[str] = set()

    def run(self) -> TorchModuleIRGraph:
        for op in self._graph.op_nodes:
            self._rewrite(op)
        outputs = [self._in_dtype(v, v.dtype) for v in self._graph.outputs]
        weights = [*self._graph.weights, *self._weights.values()]
        return replace(self._graph, outputs=outputs, op_nodes=self._ops, weights=weights)

    def _rewrite(self, op: TorchOp) -> None:
        dtype = self._dtype(op)
        inputs = {id(v): self._in_dtype(v, dtype) if v.dtype is F32 else self._now.get(id(v), v) for v in op.inputs}
        arguments = {name: replace_tensors(value, lambda v: inputs[id(v)]) for name, value in op.arguments.items()}
        if dtype is F16:
            arguments = {name: F16 if value is F32 else value for name, value in arguments.items()}
        results = tuple(None if o is None else self._result(o, dtype) for o in op.outputs)
        new = replace(op, arguments=arguments, outputs=results)
        for result in results:
            if result is not None:
                result.producer = new
        self._ops.append(new)

    def _dtype(self, op: TorchOp) -> torch.dtype:
        """Return the dtype of an operator: the plan's or, if it only moves elements, its inputs'."""
        unit = unit_of(op)
        if unit is not None:
            return F16 if self._is_half(unit) else F32
        floats = [v for v in op.inputs if v.dtype is F32 and v.data is None]
        moved = name_of(op.kind) in MOVERS and any(o is not None and o.dtype is F32 for o in op.outputs)
        fits = all(abs(a) <= _LARGEST or math.isinf(a) for a in op.arguments.values() if isinstance(a, float))
        return F16 if moved and fits and floats and all(self._now[id(v)].dtype is F16 for v in floats) else F32

    def _in_dtype(self, variable: TensorVariable, dtype: torch.dtype) -> TensorVariable:
        """Return a tensor cast to a dtype."""
        if variable.dtype is not F32:
            return self._now.get(id(variable), variable)
        if variable.data is not None:
            return self._half(variable) if dtype is F16 else variable
        now = self._now[id(variable)]
        return now if now.dtype is dtype else self._cast(now, dtype)

    def _half(self, weight: TensorVariable) -> TensorVariable:
        half = self._weights.get(id(weight))
        if half is None:
            assert weight.data is not None
            label = f"{weight.label}.float16" if weight.label and self._is_wide_too(weight) else weight.label
            half = replace(
                weight,
                data=weight.data.half(),
                dtype=F16,
                label=label,
                fake=None,
                folded_norm=None,
                stored=None,
                moved=None,
            )
            self._weights[id(weight)] = half
        return half

    def _is_wide_too(self, weight: TensorVariable) -> bool:
        """Return whether operators in float32 read the weight as well, under its own label."""
        readers = [op for op in self._graph.op_nodes if any(v is weight for v in op.inputs)]
        return any(self._dtype_of_reader(op) is F32 for op in readers) or any(v is weight for v in self._graph.outputs)

    def _dtype_of_reader(self, op: TorchOp) -> torch.dtype:
        unit = unit_of(op)
        return F16 if unit is not None and self._is_half(unit) else F32

    def _cast(self, value: TensorVariable, dtype: torch.dtype) -> TensorVariable:
        key = (id(value), dtype)
        if key not in self._casts:
            op_ref = _TO_COPY
            arguments: dict[str, Any] = {a.name: a.default_value for a in op_ref._schema.arguments}
            arguments.update({"self": value, "dtype": dtype})
            cast = replace(value, name=f"{value.name}_cast", dtype=dtype, producer=None)
            origin = value.producer.origin if value.producer else None
            cast.producer = TorchOp(
                "aten::_to_copy", "", (), (cast,), cast.name, op_ref, arguments=arguments, origin=origin
            )
            self._ops.append(cast.producer)
            self._casts[key] = cast
        return self._casts[key]

    def _result(self, old: TensorVariable, dtype: torch.dtype) -> TensorVariable:
        """Return the new tensor of a result; a float32 one gets the dtype of its operator."""
        new = replace(old, dtype=dtype if old.dtype is F32 else old.dtype, fake=None, producer=None)
        self._now[id(old)] = new
        return new
