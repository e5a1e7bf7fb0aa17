"""Lowering of stored weights: a variable in its storage format, under the weight's label, and its conversion."""

from __future__ import annotations

import re

import numpy as np
import torch

from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT32, Fragment, Operation, Value
from t2n_core.nnef.loop_emitter import LoopEmitter
from t2n_core.op.stored.blocks import BlockWeight
from t2n_core.op.stored.chunks import LEAST
from t2n_core.op.stored.float16 import Float16Weight
from t2n_core.op.stored.int8 import ByteWeight
from t2n_core.op.weights import TensorWeight, with_values
from t2n_core.torch_graph.graph.ir import StoredWeight


def stored_value(g: Emitter, label: str, stored: StoredWeight) -> Value:
    """Return the value of a stored weight: blocks as they are, others as float32, which the engine computes once.

    For blocks of more than two axes that are picked by index, see `blocks_of`.
    """
    shape = tuple(stored.values.shape)
    elements = TensorWeight(stored.values).array
    if stored.format == "q4_0":
        return g.variable(label, BlockWeight(stored, shape), format="q4_0")
    if stored.format == "float16":
        return half_value(g, label, stored.values)
    assert stored.scales is not None
    integers = g.variable(label, ByteWeight(stored), format="int8")
    scales = g.variable(f"{label}.scale", ArrayWeight(stored.scales.numpy()), format="int8")
    return with_values(g.mul(g.cast(integers, FLOAT32), scales), elements)


def half_value(g: Emitter, label: str, tensor: torch.Tensor) -> Value:
    """Return the float32 value of a tensor that is stored as float16."""
    variable = g.variable(label, Float16Weight(tensor), format="float16")
    return with_values(g.cast(variable, FLOAT32), TensorWeight(tensor).array)


def blocks_of(g: Emitter, weight: Value) -> Value | None:
    """Return a weight as a matrix of blocks, each index of its first axis a row; None for any other weight."""
    source = weight.weight
    if not isinstance(source, BlockWeight):
        return None
    if weight.rank == 2:
        return weight
    producer = weight.producer
    assert producer is not None
    label, flat = producer.arguments["label"], (source.shape[0], int(np.prod(source.shape[1:])))
    return g.variable(label, BlockWeight(source.stored, flat), format="q4_0 rows")


def is_computed_matrix(constant: Value) -> bool:
    """Return whether a tensor computed at export is a float32 matrix that is large enough to be stored differently."""
    shape = [int(extent) for extent in constant.shape]
    return constant.dtype == FLOAT32 and sum(extent != 1 for extent in shape) > 1 and int(np.prod(shape)) >= LEAST


def cast_in_bodies(g: Emitter) -> None:
    """Move the dequantising casts of stored weights into scan bodies, where the release repacks computed weights."""
    if not isinstance(g, LoopEmitter) or not g.repacks_computed:
        return
    for operation in g.graph.operations:
        if operation.name == "tract_core_scan":
            _cast_in_body(g, operation)


def _stored_source(value: Value) -> tuple[Value, Value | None] | None:
    """Return the variable and the scales that a value is computed from; None if it is not a stored weight."""
    operation, scales = value.producer, None
    if operation is not None and operation.name == "mul":
        scales, wide = sorted(
            operation.inputs(),
            key=lambda operand: operand.producer is not None and operand.producer.name == "tract_core_cast",
        )
        operation = wide.producer
    if operation is None or operation.name != "tract_core_cast":
        return None
    (source,) = operation.inputs()
    is_stored = isinstance(source.weight, Float16Weight if scales is None else ByteWeight)
    return (source, scales) if is_stored else None


def _cast_in_body(g: Emitter, scan: Operation) -> None:
    arguments = scan.arguments["full"]
    stored_sources = {name: pair for name, value in arguments if (pair := _stored_source(value)) is not None}
    if not stored_sources:
        return
    body = g.graph.fragments[scan.arguments["body"]]
    head, _, rest = body.text.partition("{")
    lines, full = "", []
    for name, value in arguments:
        if name not in stored_sources:
            full.append((name, value))
            continue
        source, scales = stored_sources[name]
        parameters = f"{name}_held:" if scales is None else f"{name}_scale: tensor<scalar>, {name}_held:"
        head = re.sub(rf"\b{name}:", parameters, head)
        cast = f'tract_core_cast({name}_held, to = "f32")'
        lines += f"\n  {name} = {cast if scales is None else f'mul({cast}, {name}_scale)'};"
        full += [(f"{name}_held", source), *([] if scales is None else [(f"{name}_scale", scales)])]
    new_name = "_".join([body.name, "casts", *stored_sources])
    text = f"{head.replace(body.name, new_name, 1)}{{{lines}{rest}"
    scan.arguments["body"] = g.fragment(Fragment(new_name, text, body.uses | {"tract_core_cast", "mul"}))
    scan.arguments["full"] = full
