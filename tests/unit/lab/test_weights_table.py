"""The table of stored weights is made of what was measured."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.lab.pages.weights import table_of


def row(net: str, format: str, version: str, **fields: Any) -> dict[str, Any]:
    usual = {"status": "pass", "stored": 1, "bytes": [1000, 255], "ratio": 1.004, "notes": []}
    return {"net": net, "format": format, "version": version, **usual, **fields}


def test_cells_are_sizes_and_times() -> None:
    told = (
        "weights had a partial effect: `a`, `b` and 2 more stay float32: it crashes; "
        "`c` stays float32: rows of 27 elements; `constant_0` (`add` in `up`) stays float32: computed at export"
    )
    rows = [
        row("linear", "int8", "0.23.9"),
        row("linear", "q4_0", "0.23.9", stored=0, ratio=None, notes=[told]),
        row("conv", "int8", "0.9.1", status="mismatch"),
        row("conv", "int8", "0.23.9", bytes=[1000, 500], ratio=0.5, notes=["other; `a` stays float32: it crashes"]),
    ]
    assert table_of(rows).splitlines() == [
        "| format | net | 0.9.1 | 0.23.9 |",
        "|---|---|---|---|",
        "| int8 | linear |  | 0.26, 1.00 |",
        "| int8 | conv | **mismatch** | 0.50, 0.50 |",
        "| q4_0 | linear |  | - |",
        "",
        "What stays float32, wholly or in part:",
        "",
        "- it crashes: linear, conv",
        "- rows of 27 elements: linear",
        "- computed at export: linear",
    ]


def test_there_is_no_table_of_nothing() -> None:
    with pytest.raises(ValueError, match="no rows"):
        table_of([])
