"""Errors of the engine in a stream, with the line of the model that they come from, and a hint."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from t2n_core.errors import Origin
from t2n_core.nnef.graph import Graph
from t2n_core.parity.outcome import Outcome, Stage

_NODE: Final = re.compile(r'(?:Translating node|Evaluating) #\d+ "([^"]+)"')
_STRIDE: Final = re.compile(r"requires pulse \(\d+\) to be a stride \((\d+)\) multiple")
_SUFFIX: Final = re.compile(r"_?[^_]*$")


def with_reason(outcome: Outcome, graph: Graph) -> Outcome:
    """Return a failure of the engine, while it makes or runs a stream, with the line of the model and a hint."""
    error = outcome.error
    if error is None or outcome.passed or outcome.stage not in (Stage.OPTIMISE, Stage.RUN):
        return outcome
    if stride := _STRIDE.search(error.message):
        hint = f"give a pulse that is a multiple of {stride[1]}, since each pulse has to give whole steps"
    else:
        hint = "tract cannot run this pulse by pulse: leave it out of the stream, or give the model whole sequences"
    origin = _origin_of(error.message, graph)
    more = {} if origin is None else {"op": origin.op, "module_path": origin.module_path, "source": origin.source}
    return replace(outcome, error=replace(error.with_hint(hint), **more))


def _origin_of(message: str, graph: Graph) -> Origin | None:
    """Return the origin of the node that an error names: a node's name begins with a value's name."""
    match = _NODE.search(message)
    origins = {value.name: operation.origin for operation in graph.operations for value in operation.outputs}
    name = match[1] if match else ""
    while name and name not in origins:
        name = _SUFFIX.sub("", name)
    return origins.get(name)
