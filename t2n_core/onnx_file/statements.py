"""The nodes of an ONNX model as statements, under the names that engines give them, with their origins in PyTorch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import onnx

from t2n_core.errors import Origin
from t2n_core.nnef.reading.document import Argument, Assignment, Document, Name
from t2n_core.onnx_file.model import OnnxModel
from t2n_core.text import source_in_trace

_TORCH: Final = "pkg.torch.onnx."
"""Prefix of the metadata that torch.onnx writes."""
_TARGET: Final = re.compile(r"target=torch\.ops\.(\w+)\.(\w+)(?:\.(\w+))?")
_SCOPE: Final = re.compile(r"'([^']*)'")


def document_of(model: OnnxModel) -> Document:
    """Return the nodes of the graph as statements; the result of each is the name that an engine gives the node."""
    nodes = model.proto.graph.node
    labels = {name: _label(node) for node in nodes for name in node.output}
    return Document(
        model.proto.graph.name,
        tuple(port.name for port in model.inputs),
        tuple(port.name for port in model.outputs),
        tuple(
            Assignment((_label(node),), node.op_type, tuple(Argument("", Name(labels.get(n, n))) for n in node.input))
            for node in nodes
        ),
    )


def origins_of(model: OnnxModel) -> dict[str, str]:
    """Return operator, module and line of PyTorch by the names of `document_of`, as torch.onnx writes them."""
    notes = {_label(node): {entry.key: entry.value for entry in node.metadata_props} for node in model.proto.graph.node}
    return {name: str(origin) for name, noted in notes.items() if (origin := _origin(noted)) is not None}


def _label(node: onnx.NodeProto) -> str:
    return str(node.name or next(filter(None, node.output), ""))


def _origin(noted: Mapping[str, str]) -> Origin | None:
    target = _TARGET.search(noted.get(f"{_TORCH}fx_node", ""))
    if target is None:
        return None
    overload = "" if target[3] in (None, "default") else f".{target[3]}"
    scopes = _SCOPE.findall(noted.get(f"{_TORCH}name_scopes", ""))[:-1]  # the last one is the node itself
    source = source_in_trace(noted.get(f"{_TORCH}stack_trace", ""))
    return Origin(f"{target[1]}::{target[2]}{overload}", scopes[-1] if scopes else "", source)
