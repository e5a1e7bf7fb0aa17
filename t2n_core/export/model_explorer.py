"""An NNEF graph as JSON for Model Explorer, and values of its nodes as overlays.

Model Explorer opens `*.graph.json` as a model; `*.data.json` is loaded there as node data. Its `input_graph.ts` and
`node_data_builder.py` define the formats.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from t2n_core.nnef.graph import Graph, Operation, Value, values_in
from t2n_core.nnef.writer import argument_text

GRAPH_ID = "network"
_LONGEST = 200
"""Most characters of an attribute; lists of weights would have megabytes."""
_COLOURS = ({"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#e34a33"})


def explorer_graph(graph: Graph, label: str) -> dict[str, Any]:
    """Return a graph as a collection for Model Explorer; a node's id is the name of its first result."""
    return {"label": label, "graphs": [{"id": GRAPH_ID, "nodes": [*map(_node, graph.operations), *_ends(graph)]}]}


def explorer_data(numbers: Mapping[str, float]) -> dict[str, Any]:
    """Return node data from the figures of named values; the largest figure is the darkest."""
    return {GRAPH_ID: {"results": {name: {"value": n} for name, n in numbers.items()}, "gradient": list(_COLOURS)}}


def write_explorer_files(graph: Graph, folder: Path, label: str, **numbers: Mapping[str, float]) -> None:
    """Write `model.graph.json` into a folder, and `<name>.data.json` for each set of numbers. Raises OSError."""
    _write(folder / "model.graph.json", explorer_graph(graph, label))
    for name, values in numbers.items():
        _write(folder / f"{name}.data.json", explorer_data(values))


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


def _node(operation: Operation) -> dict[str, Any]:
    arguments = {name: value for name, value in operation.arguments.items() if not list(values_in(value))}
    attributes = {name: argument_text(value)[:_LONGEST] for name, value in arguments.items()}
    origin = operation.origin
    if origin is not None:
        attributes |= {"torch operator": origin.op, "torch module": origin.module_path, "torch line": origin.source}
    return {
        "id": operation.outputs[0].name,
        "label": operation.name,
        "namespace": "" if origin is None else origin.module_path.replace(".", "/"),
        "attrs": _pairs({name: text for name, text in attributes.items() if text}),
        "incomingEdges": [_edge(value, index) for index, value in enumerate(operation.inputs())],
        "outputsMetadata": [_result(value, index) for index, value in enumerate(operation.outputs)],
    }


def _ends(graph: Graph) -> Iterator[dict[str, Any]]:
    """Yield a node for each output of the graph, and for each input that no operation computes."""
    made = {id(value) for operation in graph.operations for value in operation.outputs}
    for value in graph.inputs:
        if id(value) not in made:
            yield {"id": value.name, "label": "external", "namespace": "", "outputsMetadata": [_result(value, 0)]}
    for value in graph.outputs:
        yield {"id": f"output {value.name}", "label": "output", "namespace": "", "incomingEdges": [_edge(value, 0)]}


def _edge(value: Value, input_index: int) -> dict[str, str]:
    producer = value.producer
    names = [value.name] if producer is None else [output.name for output in producer.outputs]
    index = 0 if producer is None else next(i for i, output in enumerate(producer.outputs) if output is value)
    return {"sourceNodeId": names[0], "sourceNodeOutputId": str(index), "targetNodeInputId": str(input_index)}


def _result(value: Value, index: int) -> dict[str, Any]:
    shape = ", ".join(map(str, value.shape))
    facts = {"tensor_name": value.name, "tensor_shape": f"{value.dtype}[{shape}]"}
    return {"id": str(index), "attrs": _pairs(facts)}


def _pairs(facts: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in facts.items()]
