"""Weights that the archive holds as float16, and that the engine computes with as float32.

Two steps that know nothing of each other. The chosen weights are rounded on the torch graph, before anything is
computed of them. At the end every tensor that float16 holds without loss is stored so, behind a cast.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT16, FLOAT32, ArrayWeight, Fragment, Operation, Value, WeightSource
from t2n_core.nnef.tract.traits import traits_of
from t2n_core.nnef.writing_options import WritingOptions
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph
from t2n_core.torch_graph.simplify.passes import swapped
from t2n_core.torch_graph.tensors_on_disk import tensor_on_disk

LARGEST = torch.finfo(torch.float16).max
_LEAST = 64
"""Elements from which on a tensor is stored as float16: below, the header of its file is larger."""
_AT_A_TIME = 1 << 20
"""Elements that are rounded at a time, to bound the memory."""
_ERROR = 2.0**-11
"""The largest relative error of a number that float16 has in full precision."""


def rounded(tensor: torch.Tensor) -> torch.Tensor:
    """Return the numbers of a tensor rounded to those of float16, in its own dtype."""
    found = tensor_on_disk(tensor.shape, tensor.dtype)
    flat, source = found.view(-1), tensor.detach().reshape(-1)
    for start in range(0, len(source), _AT_A_TIME):
        flat[start : start + _AT_A_TIME] = source[start : start + _AT_A_TIME].half()
    return found


def loss(tensor: torch.Tensor) -> str:
    """Return why float16 cannot stand for a tensor; an empty text if it can.

    It can where no number is out of its range, and each row (along axis 0) is rounded as finely as normal numbers are:
    its error is at most 2^-11 of its size, both as root mean squares.
    """
    rows = tensor.detach().reshape(len(tensor), -1)
    beyond = lost = 0
    size = max(1, _AT_A_TIME // rows.shape[1])
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        part = torch.where(part.isfinite(), part, 0.0)
        beyond += int((part.abs() > LARGEST).sum())
        error = (part.double() - part.half().double()).square().sum(1)
        lost += int((error > _ERROR**2 * part.double().square().sum(1)).sum())
    if beyond:
        return f"{beyond} numbers beyond {LARGEST:g}"
    return f"{lost} of {len(rows)} rows too small for float16" if lost else ""


def with_rounded(
    graph: TorchModuleIRGraph, options: WritingOptions, own: Mapping[str, torch.Tensor]
) -> TorchModuleIRGraph:
    """Return a graph of tensors of its own, with the wanted weights rounded where float16 can stand for them.

    `own` are the weights of the model, to which the reference gives the same numbers. Vectors stay as they are: biases
    and norms are small, and matter most.
    """
    twins: dict[int, TensorVariable] = {}
    done: set[str] = set()
    left: list[str] = []
    for variable in graph.weights:
        data = variable.data
        twins[id(variable)] = twin = replace(variable)
        if data is None or data.dtype != torch.float32 or data.dim() < 2 or data.numel() < _LEAST:
            continue
        label = variable.label
        if not label or label in graph.compressible or not options.stores_as_half(label):
            continue
        reason = loss(data) if label in own else "no weight of the model itself"
        if reason:
            left.append(f"`{label}` stays float32: {reason}")
            continue
        twin.data = rounded(data)
        done.add(label)
    ops = []
    for op in graph.op_nodes:
        results = tuple(None if o is None else replace(o, data=None) for o in op.outputs)
        twins.update((id(old), new) for old, new in zip(op.outputs, results, strict=True) if old is not None and new)
        arguments = {name: swapped(argument, twins) for name, argument in op.arguments.items()}
        ops.append(replace(op, arguments=arguments, outputs=results))
        for result in results:
            if result is not None:
                result.producer = ops[-1]
    outputs = [twins.get(id(v), v) for v in graph.outputs]
    weights = [twins[id(v)] for v in graph.weights]
    rest = tuple(left)
    return replace(graph, outputs=outputs, op_nodes=ops, weights=weights, rounded=frozenset(done), unrounded=rest)


@dataclass(frozen=True, slots=True, eq=False)
class HalfWeight:
    """The numbers of another source, as float16."""

    source: WeightSource

    @property
    def dtype(self) -> np.dtype[Any]:
        return FLOAT16

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shape

    def chunks(self) -> Iterator[memoryview]:
        for part in _parts(self.source):
            yield part.astype("<f2").view(np.uint8).data


def store_halves(g: Emitter) -> None:
    """Store the float32 tensors of a finished graph that float16 holds without loss as such, each behind a cast."""
    pending, g.graph.operations = g.graph.operations, []
    computed = 0
    wider: dict[int, Value] = {}
    halves: dict[int, Value] = {}
    for operation in pending:
        value = operation.outputs[0]
        if operation.name == "tract_core_scan" and traits_of(g.spec.version).forgets_computed_weights:
            _cast_in_body(g, operation, halves)
        operation.arguments = {name: _swapped(argument, wider) for name, argument in operation.arguments.items()}
        if operation.name != "variable" or value.dtype != FLOAT32 or value.rank < 2 or not _is_worth_it(value):
            g.graph.operations.append(operation)
            computed += _is_computed(value)
            continue
        assert value.weight is not None
        g.begin(value.name, None, ())
        half = g.variable(operation.arguments["label"], HalfWeight(value.weight), form="float16")
        halves[id(value)], wider[id(value)] = half, g.cast(half, FLOAT32)
    if computed:
        words = f"what is computed at export stays float32: {computed} tensors"
        g.graph.declined.setdefault("weights", []).append(words)


def _cast_in_body(g: Emitter, scan: Operation, halves: Mapping[int, Value]) -> None:
    """Let the body of a scan take the stored halves, and begin with their casts."""
    given = scan.arguments["full"]
    names = [name for name, value in given if id(value) in halves]
    if not names:
        return
    body = g.graph.fragments[scan.arguments["body"]]
    head, _, rest = body.text.partition("{")
    for name in names:
        head = re.sub(rf"\b{name}:", f"{name}_half:", head)
    casts = "".join(f'\n  {name} = tract_core_cast({name}_half, to = "f32");' for name in names)
    own = "_".join([body.name, "casts", *names])
    text = f"{head.replace(body.name, own, 1)}{{{casts}{rest}"
    scan.arguments["body"] = g.fragment(Fragment(own, text, body.uses | {"tract_core_cast"}))
    scan.arguments["full"] = [
        (f"{name}_half", halves[id(value)]) if name in names else (name, value) for name, value in given
    ]


def _swapped(argument: Any, wider: Mapping[int, Value]) -> Any:
    """Return an argument with the variables in it replaced, also in nested lists."""
    if isinstance(argument, list | tuple):
        return type(argument)(_swapped(one, wider) for one in argument)
    return wider.get(id(argument), argument)


def _is_computed(value: Value) -> bool:
    """Return whether this is a tensor of float32 that was made at export, and is no vector."""
    weight = value.weight
    if not isinstance(weight, ArrayWeight) or weight.dtype != FLOAT32:
        return False
    return sum(extent != 1 for extent in weight.shape) > 1 and bool(np.prod(weight.shape) >= _LEAST)


def _is_worth_it(value: Value) -> bool:
    weight = value.weight
    if weight is None or np.prod(weight.shape) < _LEAST:
        return False
    with np.errstate(over="ignore"):
        return all(bool(((part == part.astype(np.float16)) | np.isnan(part)).all()) for part in _parts(weight))


def _parts(source: WeightSource) -> Iterator[NDArray[Any]]:
    for chunk in source.chunks():
        numbers = np.frombuffer(chunk, "<f4")
        for start in range(0, len(numbers), _AT_A_TIME):
            yield numbers[start : start + _AT_A_TIME]


__all__ = ["HalfWeight", "loss", "rounded", "store_halves", "with_rounded"]
