"""Outlines: cells without the evidence that only their own page shows."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from pytest_t2n.records.schema import CellLine, OutputLine
from t2n_core.level import TractCheckTolerance
from t2n_core.parity.stage import AUTHOR

_MESSAGE = 4_000
"""Most characters of an error's message in an outline."""


def outline_of(cell: CellLine, words: dict[str, str] | None = None) -> CellLine:
    """Return the cell without its evidence, with the fields for counting, grouping and sorting: a tenth of the memory.

    `words` interns strings, so that equal texts of several cells are one object.
    """
    same = (words if words is not None else {}).setdefault
    error = cell.error
    if error is not None:
        error = msgspec.structs.replace(error, message=same(message := error.message[:_MESSAGE], message), details="")
    run = cell.times.get("run")
    return msgspec.structs.replace(
        cell,
        case=same(cell.case, cell.case),
        target=same(cell.target, cell.target),
        version=same(cell.version, cell.version),
        label=same(cell.label, cell.label),
        expected=same(cell.expected, cell.expected),
        outputs=[_output_of(cell.outputs[0].dtype)] if cell.outputs else [],
        metrics=[],
        sizes=[],
        failed_sizes=[],
        range="",
        refused_sizes=[],
        error=error,
        times={} if run is None else {"run": run},
        archive_sha256="",
        facts={AUTHOR: cell.author} if cell.author else {},
        op=same(cell.op, cell.op),
        ops=[same(op, op) for op in cell.ops],
        dtype=same(cell.dtype, cell.dtype),
        graph=same(cell.graph, cell.graph),
        platform=same(cell.platform, cell.platform),
        exported=same(cell.exported, cell.exported),
        on=same(cell.on, cell.on),
        reads={},
    )


@lru_cache
def _output_of(dtype: str) -> OutputLine:
    """Return an output line with only the dtype."""
    return OutputLine(dtype, dtype, [], "pass", TractCheckTolerance.EXACT)
