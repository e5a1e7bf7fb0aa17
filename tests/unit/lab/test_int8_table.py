"""The table of the suite `int8` is made of records."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.lab.pages.int8 import table_of
from tests.releases import NEWEST


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
        record("linear", NEWEST),
        record("conv", NEWEST, outputs=off),
        record("linear", "0.9.1", status="mismatch"),
        record("lstm-gru", NEWEST, outputs=real),
        record("vision", "0.9.1", **deep),
        record("linear", NEWEST) | {"nodeid": f"conformance/suites/test_layers.py::test_layers[linear-tract-{NEWEST}]"},
    ]
    assert table_of(records).splitlines() == [
        f"| net | 0.9.1 | {NEWEST} |",
        "|---|---|---|",
        "| linear | **mismatch** | 0 |",
        "| conv |  | 1 |",
        "| lstm-gru |  | 2.5e-07 |",
        "| vision | 0.123 of 0.500 |  |",
    ]


def test_there_is_no_table_of_other_suites() -> None:
    with pytest.raises(ValueError, match="no record"):
        table_of([{"type": "run"}])
