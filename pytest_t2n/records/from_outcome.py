"""Create records from the outcome of a check, or for a cell without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pytest_t2n.records.cell import Cell
from pytest_t2n.records.schema import SCHEMA, CellLine, ErrorLine
from t2n_core.parity.stage import Stage, Status
from t2n_core.text import clip

if TYPE_CHECKING:
    from t2n_core.parity.outcome import Outcome

REUSED = "t2n_reused"
"""A fact of an outcome that was not computed in this session."""
BENCHMARK = "t2n_benchmark"
"""A fact of an outcome: its times, which become a separate field of the record."""
TOKENS = "tokens"
"""Fact of a generation outcome: the counts of matching and of compared tokens."""


def outcome_record(cell: Cell, outcome: Outcome, *, expected: str = "") -> CellLine:
    """Return the line of an outcome."""
    from t2n_core.engine.protocol import OPERATORS, OPERATORS_UNKNOWN
    from t2n_core.parity.outcome import plain

    fields = outcome.to_dict()
    del fields["engine"]
    facts: dict[str, Any] = dict(outcome.facts)
    more: dict[str, Any] = {
        "expected": expected,
        "reused": bool(facts.pop(REUSED, False)),
        "benchmark": facts.pop(BENCHMARK, None),
        "tokens": facts.pop(TOKENS, ""),
        "operators": facts.pop(OPERATORS, {}),
        "notes": outcome.notes,
    }
    if not facts.get(OPERATORS_UNKNOWN):
        facts.pop(OPERATORS_UNKNOWN, None)
    more["facts"] = plain(facts)
    return msgspec.convert({"type": "cell", **_identity(cell), **fields, **more}, CellLine)


def simple_record(
    cell: Cell, status: Status, stage: Stage, error_class: str, message: str, *, expected: str = ""
) -> CellLine:
    """Return the line of a cell without an outcome: skipped, not run, or lost with its worker."""
    error = ErrorLine(error_class, clip(message))
    return CellLine(**_identity(cell), status=status, stage=stage, error=error, expected=expected)


def _identity(cell: Cell) -> dict[str, Any]:
    engine = cell.engine
    return {
        "schema": SCHEMA,
        "nodeid": cell.nodeid,
        "case": cell.case,
        "target": engine.target,
        "version": engine.version,
        "label": engine.label,
        "platform": engine.platform,
        "exporter": engine.exporter,
    }
