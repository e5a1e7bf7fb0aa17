"""The first node of an ONNX model that an engine computes otherwise than the model's reference."""

from __future__ import annotations

from pathlib import Path

import onnx

from t2n_core.engine.protocol import Engine
from t2n_core.errors import T2NError
from t2n_core.files import write_whole
from t2n_core.onnx_file.model import bytes_with_weights
from t2n_core.onnx_file.samples import reference_samples
from t2n_core.onnx_file.writer_repairs import element_types
from t2n_core.parity.comparison import compare_outputs
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.parity.table import comparison_table
from t2n_core.scratch import scratch_folder


def describe_wrong_node(engine: Engine, request: CheckRequest) -> str:
    """Return the first node whose value differs, at the first sample that has one, as text, or why there is none.

    All values of the graph become its outputs, which may change what the engine does: it cannot fuse an output.
    """
    try:
        with scratch_folder() as folder:
            path = folder / "model.onnx"
            nodes = _write_with_all_values(request.archive, path)
            for sample in request.samples:
                if text := _at_sample(engine, request, path, nodes, sample):
                    return text
    except T2NError as wrong:
        return f"no first wrong node: {wrong.message}"
    return "every node is computed as by the reference where all values are outputs"


def _write_with_all_values(source: Path, target: Path) -> dict[str, str]:
    """Write the model with all values of known type as outputs, in order; return the node of each, as text."""
    model = onnx.ModelProto.FromString(bytes_with_weights(source))
    types = element_types(model)
    nodes = {name: f"{node.op_type} `{node.name or name}`" for node in model.graph.node for name in node.output if name}
    typed_nodes = {name: node for name, node in nodes.items() if types.get(name)}
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_tensor_value_info(name, types[name], None) for name in typed_nodes)
    write_whole(target, model.SerializeToString())
    return typed_nodes


def _at_sample(engine: Engine, request: CheckRequest, path: Path, nodes: dict[str, str], sample: Sample) -> str:
    """Return the first node whose value differs at the inputs of a sample; "" if none does."""
    computed = reference_samples(path, [sample.inputs])
    reply = engine.run(path, [sample.inputs], timeout=request.timeout)
    if reply.status != "ok":
        return f"no first wrong node: with all values as outputs the engine fails: {reply.message}"
    expected, actual = computed.samples[0].expected, reply.outputs[0]
    compared = compare_outputs(expected, actual, names=list(nodes), criteria=request.criteria)
    for name, output in zip(nodes, compared, strict=True):
        if not output.passed:
            first = f"first node that the engine computes otherwise than {computed.reference}: {nodes[name]}"
            return f"{first}\n{comparison_table([output])}"
    return ""
