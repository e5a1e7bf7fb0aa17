"""Pages and tables that are made of recorded rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.checks.aten_outcomes import PASS, WRONG, CaseLine, SampleLine
from conformance.lab.archives import largest_error
from conformance.lab.machine import describe_machine
from conformance.lab.measure import onnx_files, weight_losses
from conformance.lab.measure.language_models.decoding import compare_tokens, one_by_one
from conformance.lab.measure.language_models.tables import markdown
from conformance.lab.pages.support import support_page
from conformance.lab.pages.weights import table_of
from tests.releases import NEWEST


def line(engine: str, *samples: tuple[str, str], operator: str = "add") -> CaseLine:
    sample_lines = tuple(SampleLine(str(n), result, level=level) for n, (result, level) in enumerate(samples))
    return CaseLine(f"{operator}-float32", "operator", operator, "float32", engine, sample_lines)


def test_a_release_is_as_good_as_its_worst_tier() -> None:
    page = support_page(
        [
            line(f"tract {NEWEST}", (PASS, "exact")),
            line(f"tract {NEWEST} no-fma", (PASS, "approximate")),
            line("tract 0.22.4", (PASS, "close")),
            line("khronos 1.0.5", (PASS, "exact")),
            line(f"tract {NEWEST}", (PASS, "exact"), (PASS, "exact"), operator="mul"),
            line(f"tract {NEWEST} no-fma", (PASS, "exact"), (WRONG, ""), operator="mul"),
            line(f"tract {NEWEST}", (PASS, "close"), operator="sub"),
            line(f"tract {NEWEST} no-fma", (PASS, "close"), operator="sub"),
        ]
    )
    table = page.partition("## Operators")[2]
    assert table.split("\n")[2] == f"| operator | dtype | tract 0.22.4 | tract {NEWEST} | khronos 1.0.5 |"
    assert "| `add` | float32 | close | approximate (no-fma) | exact |" in table
    assert "| `mul` | float32 |  | **wrong** (no-fma) |  |" in table
    assert "| `sub` | float32 |  | close |  |" in table
    assert page.index(f"| tract {NEWEST} | operator |") < page.index(f"| tract {NEWEST} no-fma | operator |")


def row(net: str, format: str, version: str, **fields: Any) -> dict[str, Any]:
    usual = {"status": "pass", "stored": 1, "bytes": [1000, 255], "ratio": 1.004, "notes": []}
    return {"net": net, "format": format, "version": version, **usual, **fields}


def test_cells_are_sizes_and_times() -> None:
    note = (
        "weights had a partial effect: `a`, `b` and 2 more stay float32: it crashes; "
        "`c` stays float32: rows of 27 elements; `constant_0` (`add` in `up`) stays float32: computed at export"
    )
    rows = [
        row("linear", "int8", NEWEST),
        row("linear", "q4_0", NEWEST, stored=0, ratio=None, notes=[note]),
        row("conv", "int8", "0.9.1", status="mismatch"),
        row("conv", "int8", NEWEST, bytes=[1000, 500], ratio=0.5, notes=["other; `a` stays float32: it crashes"]),
    ]
    assert table_of(rows).splitlines() == [
        f"| format | net | 0.9.1 | {NEWEST} |",
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


ROWS = [np.array([0.0, 1.0, 2.0]), np.array([5.0, 0.0, 0.0]), np.array([0.0, 9.0, 0.0])]


def test_tokens_count_up_to_the_first_wrong_one() -> None:
    expected = np.stack([ROWS[0], ROWS[1] + 0.5, ROWS[2] + 100])
    assert compare_tokens([2, 0, 1], ROWS, [2, 0, 1], np.stack(ROWS)) == {"right": 3, "of": 3, "largest_error": 0.0}
    result = compare_tokens([2, 0, 1], ROWS, [2, 1, 1], expected)
    assert result == {"right": 1, "of": 3, "largest_error": 0.5}, "what follows a wrong token is another text"


def test_a_prompt_can_go_in_token_by_token() -> None:
    fed = []

    def step(ids: Any) -> Any:
        fed.append(ids.tolist())
        return ids

    assert one_by_one(step)(np.array([[4, 5, 6]])).tolist() == [[6]]
    assert fed == [[[4]], [[5]], [[6]]]
    assert one_by_one(step, always=False)(np.array([[4, 5]])).tolist() == [[4, 5]]


def test_the_tables_show_what_is_wrong_and_what_failed() -> None:
    written = {"cpu_seconds": 2.0, "process_seconds": 5.0, "peak_bytes": 3e6}
    figures = {"token_ms": [2.0, 4.0], "prompt_ms": [10.0, 10.0], "of": 8, "largest_error": 1e-6}
    models: dict[str, Any] = {
        "one": {
            "weights_bytes": 4_000_000,
            "exports": {"ours": written, "peer": written},
            "tokens": {
                "ours": {**figures, "right": 8},
                "peer": {**figures, "token_ms": [4.0, 8.0], "right": 0, "one_by_one": {"right": 5}},
                "steps": {**figures, "token_ms": [1.0, 2.0], "right": 8},
                "torch": {**figures, "right": 8},
                "different_tokens": 7,
            },
        },
        "two": {
            "weights_bytes": 4_000_000,
            "exports": {"ours": written, "peer": {"error": "no a|b"}},
            "tokens": {"error": "it died"},
        },
    }
    tokens, speed, exports = markdown({"machine": describe_machine(), "models": models}).split("\n\n")[1:]
    first, second = tokens.splitlines()[2:]
    assert "| 8 of 8 | 1.0e-06 | 0 of 8, first wrong at step 0; 5 with the prompt token by token |" in first
    assert "| it died |  | no a/b |  |" in second
    first, second = speed.splitlines()[2:]
    assert first == "| one | 500 | 250 | 500 | 0.50 x | 0.25 x | 0.50 x | 10.0 | 10.0 | 10.0 | 1.00 x |"
    assert second == "| two | - | - | - | - | - | - | - | - | - | - |"
    assert exports.splitlines()[3] == "| two | 4 | 2.0 | - | 5.0 | - | 3 | - |"


def test_files_side_by_side() -> None:
    figures = {"bytes": 2_400_400, "ready": 20.4, "run": 1.25, "error": 2e-6}
    row = {"net": "a", ".tgz": figures, ".tar": {**figures, "run": 2.5, "error": 1e-6}, ".onnx": {"bytes": 9e6}}
    *_, line = onnx_files.table_of([row]).splitlines()
    assert line == ("| `a` | 2,400 | 2,400 | 9,000 | 20 | 20 | refused | 2.50 | refused | 1.0e-06 | refused |")


def test_losses_by_net_and_format() -> None:
    names = ("float32", *weight_losses.FORMATS)
    rows = [{"net": "a", "weights": name, "share": 0.25, "rms": 0.0312, "most": 0.1} for name in names]
    *_, line = weight_losses.table_of(rows).splitlines()
    assert line == f"| `a` |{' 0.25, 3.12%, 10.00% |' * 4}"


def test_errors_of_outputs() -> None:
    got, expected = [np.array([1.0, 3.0]), np.array([5.0])], [np.array([1.0, 2.0]), np.array([7.0])]
    spread = np.std([1.0, 2.0, 7.0])
    errors = weight_losses.errors(got, expected)
    np.testing.assert_allclose([errors["rms"], errors["most"]], [(5 / 3) ** 0.5 / spread, 2 / spread])
    assert largest_error(got, expected) == 2
