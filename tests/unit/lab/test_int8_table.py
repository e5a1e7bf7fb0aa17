"""The table of the suite `int8` is made of records."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.lab.pages.int8 import table_of


def record(net: str, version: str, **fields: Any) -> dict[str, Any]:
    outputs = [{"max_abs": 0.0, "limit": "atol=0.0202 rtol=0"}]
    nodeid = f"conformance/suites/test_int8.py::test_int8[{net}-tract-{version}]"
    return {"nodeid": nodeid, "status": "pass", "outputs": outputs, **fields}


def test_cells_are_steps_numbers_and_spreads() -> None:
    off = [{"max_abs": 0.02, "limit": "atol=0.0202 rtol=0"}]
    real = [{"max_abs": 1e-7}, {"max_abs": 2.5e-7}]
    deep = {"outputs": [], "metrics": [{"value": 0.1234, "required": "<= 0.5"}]}
    records = [
        {"type": "run"},
        record("linear", "0.23.9"),
        record("conv", "0.23.9", outputs=off),
        record("linear", "0.9.1", status="mismatch"),
        record("lstm-gru", "0.23.9", outputs=real),
        record("vision", "0.9.1", **deep),
        {**record("linear", "0.23.9"), "nodeid": "conformance/suites/test_layers.py::test_layers[linear-tract-0.23.9]"},
    ]
    assert table_of(records).splitlines() == [
        "| net | 0.9.1 | 0.23.9 |",
        "|---|---|---|",
        "| linear | **mismatch** | 0 |",
        "| conv |  | 1 |",
        "| lstm-gru |  | 2.5e-07 |",
        "| vision | 0.123 of 0.500 |  |",
    ]


def test_there_is_no_table_of_other_suites() -> None:
    with pytest.raises(ValueError, match="no record"):
        table_of([{"type": "run"}])
