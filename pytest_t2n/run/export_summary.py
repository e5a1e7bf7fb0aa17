"""Summary of an export for its record: operators, dtype of the input, and the graph of the archive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pytest_t2n.records.schema import SCHEMA, GraphLine
from t2n_core.foreign import ForeignFileError

_KEPT = 20_000
"""Most characters of a graph in a record: unrolled nets have megabytes, more than anyone reads."""
_KEY = 16
_STAND_INS = "t2n_capture::"
"""Prefix of custom operators of capture; the operators that they replace are also in the graph."""


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """Summary of one export; empty if it failed before there was a graph."""

    ops: tuple[str, ...] = ()
    dtype: str = ""
    graph: str = ""
    notes: tuple[str, ...] = ()

    @property
    def graph_line(self) -> GraphLine | None:
        """Return the graph as a record; None if there is none."""
        if not self.graph:
            return None
        return GraphLine(SCHEMA, sha256(self.graph.encode()).hexdigest()[:_KEY], self.graph)


def summarise(export: Any, archive: Path | None = None) -> ExportSummary:
    """Return the summary of the capture of an ExportResult or a ModelExport, and of an archive if there is one."""
    graph = clipped_graph(archive) if archive is not None else ""
    try:
        captured = export.captured.graph
    except Exception:
        return ExportSummary(graph=graph)  # the outcome already reports that capture failed
    nodes = list(captured.op_nodes)
    # A node without tensor inputs only creates constants, such as the first state of a recurrent net.
    computing = [op for op in nodes if op.inputs] or nodes
    kinds = dict.fromkeys(op.origin.op if op.origin else op.kind for op in computing)
    ops = tuple(kind for kind in kinds if not kind.startswith(_STAND_INS))
    notes = tuple(getattr(export, "notes", ()))  # a ModelExport has no archive, so no notes
    return ExportSummary(ops, _dtype(value.dtype for value in captured.inputs), graph, notes)


def clipped_graph(archive: Path) -> str:
    """Return the beginning of `graph.nnef`; empty if there is none."""
    text = graph_text(archive).decode("utf-8", "replace")
    if len(text) <= _KEPT:
        return text
    beginning = text[: text.rfind("\n", 0, _KEPT) + 1] or text[:_KEPT]
    return f"{beginning}# … {len(text) - len(beginning)} characters more\n"


def graph_text(archive: Path) -> bytes:
    """Return the complete `graph.nnef` of an archive; empty if it cannot be read."""
    from t2n_core.nnef.reading.graph_file import read_graph  # a session without cells does not need it

    try:
        return read_graph(archive)
    except (OSError, ForeignFileError):
        return b""


def _dtype(dtypes: Iterable[Any]) -> str:
    """Return the first floating-point dtype, or the first dtype if there is none."""
    all_dtypes = list(dtypes)
    chosen = next((dtype for dtype in all_dtypes if dtype.is_floating_point), all_dtypes[0] if all_dtypes else "")
    return str(chosen).removeprefix("torch.")
