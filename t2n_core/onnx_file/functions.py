"""Functions in ONNX models: operators that the model or the standard defines by others."""

from __future__ import annotations

from collections.abc import Collection

import onnx
from onnx import inliner, shape_inference


def inline_functions(model: onnx.ModelProto, missing: Collection[str]) -> onnx.ModelProto:
    """Replace functions of the model, and missing operators that ONNX defines by others, by their nodes."""
    functions = [*(("", name) for name in missing), *((one.domain, one.name) for one in model.functions)]
    typed = shape_inference.infer_shapes(model)
    stored = [onnx.helper.make_tensor_value_info(one.name, one.data_type, one.dims) for one in typed.graph.initializer]
    typed.graph.value_info.extend(stored)  # some functions depend on the types of their inputs
    inlined = inliner.inline_selected_functions(typed, functions, inline_schema_functions=True)
    operators = [[node.op_type for node in one.graph.node] for one in (model, inlined)]
    if operators[0] == operators[1]:
        return model
    del inlined.graph.value_info[:]  # only the functions needed these
    return inlined
