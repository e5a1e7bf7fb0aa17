"""The comparison of architectures: which file is the better one, and what the page says of slower nets."""

from __future__ import annotations

from typing import Any

from conformance.lab.measure.architectures.page import best_of, comparison, plot, ratio
from tests.releases import NEWEST


def figures(run: float, load: float, **operators: int) -> dict[str, Any]:
    return {"least_cpu_ms": run, "load_ms": load, "bytes": 100, "operators": operators}


NAMED = {"release": NEWEST, "sizes": "fixed", "date": "2026-12-01"}
SLOW = {
    **NAMED,
    "name": "slow",
    "ours": figures(3.0, 10.0, Conv=2, Cast=3),
    "torch-to-nnef": figures(4.0, 5.0, Conv=2),
    "torch-onnx": figures(2.0, 20.0, Conv=2, Reshape=1),
}
ALONE = {
    **NAMED,
    "name": "alone",
    "ours": figures(1.0, 1.0),
    "torch-to-nnef": {"error": "killed"},
    "torch-onnx": {"error": "wrong values"},
}
FAILED = {**NAMED, "name": "failed", "ours": {"error": "refused"}, "torch-onnx": figures(1.0, 1.0)}


def test_each_figure_is_compared_with_the_better_file() -> None:
    assert best_of(SLOW, "least_cpu_ms") == ("torch-onnx", 2.0)
    assert ratio(SLOW, "least_cpu_ms") == 1.5
    assert ratio(SLOW, "load_ms") == 2.0
    assert ratio(ALONE, "load_ms") is None
    assert ratio(FAILED, "load_ms") is None


def test_the_page_counts_and_lists_what_is_slower() -> None:
    text = comparison([SLOW, ALONE, FAILED])
    assert "2026-12-01, 3 nets: 0 of 1 run in at most 1.05" in text
    assert "1 run from our file alone. Without a file of ours that runs: `failed`." in text
    assert "- `slow`, 1.50 of torch-onnx's: Cast +3, Reshape -1" in text


def test_the_plot_has_a_point_for_each_net_with_a_ratio() -> None:
    picture = plot([SLOW, ALONE, FAILED])
    assert picture.count("<circle") == 1
    assert "<title>slow 1.50</title>" in picture
