"""The cases of `conformance/upstream` show what they are about, and planted faults are reduced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.faults.__main__ import reduce_one, table
from conformance.faults.graphs import planted
from conformance.faults.plants import FLOAT64, PLANTS
from conformance.upstream.__main__ import FAILURES, HERE, Failure
from t2n_core.reduce.tract_case import replay


@pytest.mark.parametrize("failure", FAILURES, ids=lambda one: one.name)
def test_a_case_fails_in_its_release_and_passes_in_a_right_one(failure: Failure, tract_engine: Any) -> None:
    assert not replay(HERE / failure.name, tract_engine(failure.release)).passed
    if failure.oracle != FLOAT64:
        assert replay(HERE / failure.name, tract_engine(failure.oracle)).passed
    assert (HERE / f"{failure.name}.issue.md").read_text("utf-8").startswith(f"# {failure.title}\n")


def test_every_folder_is_of_a_failure() -> None:
    folders = {path.name for path in HERE.iterdir() if (path / "runme.sh").exists()}
    assert folders == {failure.name for failure in FAILURES}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda one: f"{one.name} in {one.release}")
def test_a_planted_graph_is_the_same_for_the_same_seed(plant: Any) -> None:
    first, second = (planted(5, 40, plant.make, plant.release) for _ in range(2))
    assert first.text() == second.text()
    assert any(call.operator == plant.operator for call in first.assignments)


def test_a_planted_fault_is_reduced_and_told(tmp_path: Path) -> None:
    plant = PLANTS[0]
    found = reduce_one(plant, 1, 40, tmp_path)
    assert found is not None
    assert found.is_small
    assert found.alike
    assert (found.operators, found.elements) == (1, 33)
    text = table([found], 1)
    assert "Of 1 graphs 1 came down to at most 3 operators" in text
    assert "| sub of fewer elements | 0.21.8 | mismatch | 1 | 1 | 1 (1) | 33 (33) |" in text
