"""Operators of optimised graphs in records, and their changes between two runs or two engines."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_t2n.records.cell import Cell, SelectedEngine
from pytest_t2n.records.changes import compare_columns, compare_matrices, count_changes, operator_changes
from pytest_t2n.records.from_outcome import outcome_record
from pytest_t2n.records.schema import SCHEMA, CellLine
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.stage import Stage, Status
from tests.plugin.suites import marked
from tests.releases import RECENT

OLD, NEW = "0.22.4", RECENT


def cell(case: str = "a.py::test_a", label: str = OLD, status: str = "pass", **operators: int) -> CellLine:
    node = f"{case}[tract-{label}]"
    level: Any = "close" if status == "pass" else None
    return CellLine(
        SCHEMA, node, case, "tract", label, label, Status(status), Stage.COMPARE, level, operators=operators
    )


def test_the_record_of_an_outcome_has_the_operators() -> None:
    engine = Cell("a.py::test_a[tract-0.22.4]", "a.py::test_a", SelectedEngine("tract", OLD, OLD))
    facts: dict[str, Any] = {"operators": {"OptMatMul": 2, "Scan/Tanh": 1}, "operators_unknown": "", "input": []}
    record = outcome_record(engine, Outcome(Status.PASS, Stage.COMPARE, facts=facts))
    assert (record.operators, record.facts) == ({"OptMatMul": 2, "Scan/Tanh": 1}, {"input": []})
    facts = {"operators_unknown": "no function lists them"}
    record = outcome_record(engine, Outcome(Status.PASS, Stage.COMPARE, facts=facts))
    assert (record.operators, record.facts) == ({}, facts)


def test_a_lost_fusion_between_runs_is_a_change_and_not_for_the_worse() -> None:
    before, after = cell(EinSum=4, OptMatMul=4, Add=1), cell(EinSum=6, OptMatMul=2, Add=1)
    (change,) = compare_matrices([before], [after])
    assert change.to_dict() == {
        "kind": "operators",
        "case": "a.py::test_a",
        "column": "tract 0.22.4",
        "before": "EinSum 4, OptMatMul 4",
        "after": "EinSum 6, OptMatMul 2",
        "operators": "EinSum 4 → 6, OptMatMul 4 → 2",
    }
    assert count_changes([change]) == "1 operators"
    assert compare_matrices([before], [before]) == []


def test_a_lost_fusion_between_engines_is_a_change() -> None:
    (change,) = compare_columns(
        [cell(OptMatMul=1), cell(label=NEW, EinSum=1, Add=1)], "tract 0.22.4", f"tract {RECENT}"
    )
    assert change.to_dict()["operators"] == "Add 0 → 1, EinSum 0 → 1, OptMatMul 1 → 0"


def test_a_change_of_the_result_says_what_changed_in_the_graph() -> None:
    (change,) = compare_matrices([cell(Tanh=1)], [cell(status="mismatch", Tanh=2)])
    fields = change.to_dict()
    assert (fields["kind"], fields["before"], fields["after"]) == ("regression", "pass close", "mismatch at compare")
    assert fields["operators"] == "Tanh 1 → 2"


@pytest.mark.parametrize("other", [cell(), None])
def test_unknown_operators_are_no_change(other: CellLine | None) -> None:
    assert operator_changes(cell(Tanh=1), other) == operator_changes(other, cell(Tanh=1)) == []
    assert other is None or compare_matrices([other], [cell(Tanh=1)]) == []


def test_a_line_shows_the_largest_changes() -> None:
    many = {f"Op{number}": number for number in range(1, 8)}
    (change,) = compare_matrices([cell(**many)], [cell(Op1=1)])
    assert change.to_dict()["before"] == "Op7 7, Op6 6, Op5 5, Op4 4, 2 more"
    assert change.to_dict()["operators"].count("→") == 6


MODELS = marked('["pass", "unlisted", "crash@0.22.4"]')


def test_records_have_the_operators_of_the_optimised_graph_or_the_reason(suite: Any) -> None:
    suite.pytester.makepyfile(MODELS)
    suite.run("--t2n-report=site", engines="0.22", mode="plain")
    listed, unlisted, crash = (
        suite.cells[f"test_model[{model}-tract-0.22.4]"] for model in ("pass", "unlisted", "crash@0.22.4")
    )
    assert (listed["operators"], listed["facts"]) == ({"OptMatMul": 2, "Scan/Tanh": 1}, {"input": [["x", "T,3,F32"]]})
    assert unlisted["facts"]["operators_unknown"] == "this engine has no function that lists them"
    assert "operators" not in unlisted
    assert "operators" not in crash
