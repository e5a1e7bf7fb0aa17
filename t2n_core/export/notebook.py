"""An export as HTML for a notebook."""

from __future__ import annotations

import re
from html import escape

from t2n_core.nnef.graph import Graph
from t2n_core.nnef.spec import Spec
from t2n_core.nnef.writer import graph_text

_SHOWN = 400
"""Most lines of a graph; unrolled nets have many more than anyone reads."""
_STATEMENT = re.compile(r"  \(?(\w+)")
_WIDEST = 120


def result_html(title: str, graph: Graph, spec: Spec) -> str:
    """Return the title, and the text of a graph with the model's line beside each operation that has one."""
    origins = {
        value.name: operation.origin
        for operation in graph.operations
        for value in operation.outputs
        if operation.origin is not None
    }
    lines = graph_text(graph, spec=spec).splitlines()
    rows = []
    for line in lines[:_SHOWN]:
        match = _STATEMENT.match(line)
        origin = origins.get(match[1]) if match is not None else None
        source = (origin.source or origin.op) if origin is not None else ""
        text = line if len(line) <= _WIDEST else f"{line[:_WIDEST]}…"
        rows.append(f"<tr><td><code>{_space_out(text)}</code></td><td><code>{escape(source)}</code></td></tr>")
    more = f"<p>… {len(lines) - _SHOWN} lines more</p>" if len(lines) > _SHOWN else ""
    return f"<p>{escape(title)}</p><table>{''.join(rows)}</table>{more}"


def _space_out(text: str) -> str:
    """Return a line of text with the spaces at its beginning."""
    plain = text.lstrip(" ")
    return "&nbsp;" * (len(text) - len(plain)) + escape(plain)
