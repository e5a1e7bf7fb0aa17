"""The page with the tables of float16, of results as the measurements write them."""

from __future__ import annotations

from typing import Any

from conformance.lab.measure.float16.page import page
from tests.releases import NEWEST

STORED: dict[str, Any] = {"weights": [4000, 2200], "status": "pass", "ratio": 1.0}
AUTO: dict[str, Any] = {
    "told": "precision='auto': 3 of 7 operators in float16; largest error 0.002 (0.012 with all), after 21 runs",
    "plan": {"float32": [{"operators": ["linear"]}, {"operators": ["add", "linear"]}]},
    "peaks": [0.001, 0.0021],
    "holds": True,
    "ratio": 11.26,
    "seconds": 3.6,
}


def test_stored_float16_by_release_and_architecture() -> None:
    rows = [
        {**STORED, "name": "timm-a", "version": "0.9.1"},
        {**STORED, "name": "timm-a", "version": NEWEST, "ratio": 1.25},
        {**STORED, "name": "timm-b", "version": NEWEST, "status": "mismatch"},
    ]
    text = page(rows, [], "a processor")
    assert "2 architectures, 3 archives, of which 2 compute" in text
    assert "| 0.9.1 | 1 | 0.550 | 1.000 | 1.00 | 1.00 | none |" in text
    assert f"| {NEWEST} | 2 | 0.550 | 1.125 | 1.00 | 1.25 | timm-a 1.25 |" in text
    assert "| timm-a | 4 | 0.55 | 1.00 | 1.25 |" in text
    assert "auto" not in text


def test_plans_and_what_was_refused() -> None:
    rows = [
        {**AUTO, "name": "timm-a", "version": NEWEST},
        {
            **AUTO,
            "name": "timm-b",
            "version": NEWEST,
            "told": AUTO["told"].replace("3 of 7", "7 of 7"),
            "holds": False,
        },
        {"name": "timm-c", "version": NEWEST, "failed": "InputError: no\nmore"},
    ]
    text = page([], rows, "a processor")
    assert "3 architectures, 2 plans, of which 1 hold" in text
    assert "71% in the median; in 1\narchitectures it is all of them, in 1 less than half" in text
    assert "errors are at least 0.0120" in text
    assert "squares: timm-a." in text
    assert "| timm-a | 3 of 7 | 0.0021 | 0.0120 | 11.3 | 21 | 4 | add, linear |" in text
    assert "| timm-c |  |  |  |  |  |  | InputError: no |" in text
