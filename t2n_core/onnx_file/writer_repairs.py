"""Repairs of an ONNX model for operators that the engine computes, and that its writer of archives does not know."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, inliner, numpy_helper, shape_inference
from onnx.helper import make_node

_UNSIGNED: Final = frozenset({TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64})
_SIGNED: Final = frozenset({TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64})


def inline_functions(model: onnx.ModelProto, missing: Collection[str]) -> onnx.ModelProto:
    """Replace functions of the model, and missing operators that ONNX defines by others, by their nodes."""
    functions = [*(("", name) for name in missing), *((function.domain, function.name) for function in model.functions)]
    typed = shape_inference.infer_shapes(model)
    stored = [
        onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in typed.graph.initializer
    ]
    typed.graph.value_info.extend(stored)  # some functions depend on the types of their inputs
    inlined = inliner.inline_selected_functions(typed, functions, inline_schema_functions=True)
    operators = [[node.op_type for node in proto.graph.node] for proto in (model, inlined)]
    if operators[0] == operators[1]:
        return model
    del inlined.graph.value_info[:]  # only the functions needed these
    return inlined


def hide_gelu(model: onnx.ModelProto, missing: Collection[str]) -> onnx.ModelProto:
    """Write GELU by its parts, and `erf(x)` as `-erf(-x)`, in which the engine does not recognise GELU."""
    model = inline_functions(model, ["Gelu"])
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        if node.op_type != "Erf":
            nodes.append(node)
            continue
        (x,), (y,) = node.input, node.output
        nodes += [
            make_node("Neg", [x], [f"{y}_of"]),
            make_node("Erf", [f"{y}_of"], [f"{y}_negated"], name=node.name),
            make_node("Neg", [f"{y}_negated"], [y]),
        ]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def divide_for_remainders(model: onnx.ModelProto, missing: Collection[str]) -> onnx.ModelProto:
    """Write integer remainders as divisions, whose quotients are exact; float quotients are not, so floats stay."""
    types = element_types(model)
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        dtype = types.get(node.input[0]) if node.op_type == "Mod" else None
        if dtype not in _UNSIGNED | _SIGNED:
            nodes.append(node)
            continue
        of_dividend = dtype in _UNSIGNED or any(a.name == "fmod" and a.i for a in node.attribute)
        dividend, divisor = node.input
        nodes += _remainder(dividend, divisor, node.output[0], of_dividend=of_dividend)
        zero = np.zeros((), onnx.helper.tensor_dtype_to_np_dtype(dtype))
        model.graph.initializer.append(numpy_helper.from_array(zero, f"{node.output[0]}_zero"))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def element_types(model: onnx.ModelProto) -> dict[str, int]:
    """Return the types of the elements of values that the file states, or that follow from it.

    Nothing follows where the installed onnx does not know an operator.
    """
    try:
        typed = shape_inference.infer_shapes(model).graph
    except Exception:
        typed = model.graph
    types = {value.name: value.type.tensor_type.elem_type for value in (*typed.input, *typed.value_info, *typed.output)}
    return types | {tensor.name: tensor.data_type for tensor in typed.initializer}


def _remainder(x: str, z: str, y: str, *, of_dividend: bool) -> Iterator[onnx.NodeProto]:
    """Yield nodes that compute a remainder with the sign of the dividend, or else of the divisor."""
    rest = y if of_dividend else f"{y}_rest"
    yield make_node("Div", [x, z], [f"{y}_quotient"])
    yield make_node("Mul", [f"{y}_quotient", z], [f"{y}_product"])
    yield make_node("Sub", [x, f"{y}_product"], [rest])
    if of_dividend:
        return
    yield make_node("Less", [rest, f"{y}_zero"], [f"{y}_negative"])
    yield make_node("Less", [z, f"{y}_zero"], [f"{y}_negative_divisor"])
    yield make_node("Xor", [f"{y}_negative", f"{y}_negative_divisor"], [f"{y}_differ"])
    yield make_node("Equal", [rest, f"{y}_zero"], [f"{y}_none"])
    yield make_node("Not", [f"{y}_none"], [f"{y}_some"])
    yield make_node("And", [f"{y}_differ", f"{y}_some"], [f"{y}_moved"])
    yield make_node("Add", [rest, z], [f"{y}_sum"])
    yield make_node("Where", [f"{y}_moved", f"{y}_sum", rest], [y])


WRITER_REPAIRS: Final[Mapping[str, Callable[[onnx.ModelProto, Collection[str]], onnx.ModelProto]]] = {
    "GeluExact": hide_gelu,
    "Rem": divide_for_remainders,
}
"""Repairs by the operator of tract that its writer of archives lacks."""
