"""The cases of `conformance/lab/upstream` show what they are about, and planted faults are reduced."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from conformance.lab.plant.faults.__main__ import page, reduce_one
from conformance.lab.plant.faults.architectures import planted_in
from conformance.lab.plant.faults.graphs import planted_graph
from conformance.lab.plant.faults.plants import PLANTS
from conformance.lab.upstream.cases import FAILURES, HERE, OPERATORS, RELEASE, TRANSFORMED, Failure, run_transformed
from t2n_core import ModelExport, TractNNEF
from t2n_core.reduce.tract_case import replay


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_a_case_fails_in_its_release_and_passes_in_a_right_one(failure: Failure, tract_engine: Any) -> None:
    assert not replay(HERE / failure.name, tract_engine(failure.release)).passed
    if failure.right_in:
        assert replay(HERE / failure.name, tract_engine(failure.right_in)).passed


def test_every_folder_is_of_a_failure_and_has_an_issue() -> None:
    folders = {path.name for path in HERE.iterdir() if (path / "runme.sh").exists()}
    assert folders == {*(failure.name for failure in FAILURES), *OPERATORS, *TRANSFORMED}
    for name in folders:
        text = (HERE / f"{name}.issue.md").read_text("utf-8")
        assert text.startswith("# ")
        assert tempfile.gettempdir() not in text


@pytest.mark.parametrize("name", OPERATORS)
def test_a_case_of_a_wrong_operator_mismatches(name: str, tract_engine: Any) -> None:
    outcome = replay(HERE / name, tract_engine(RELEASE))
    assert outcome.status.value == "mismatch"


@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_case_passes_until_it_is_transformed(name: str, tract_engine: Any) -> None:
    engine = tract_engine(RELEASE)
    assert replay(HERE / name, engine).passed
    reply = run_transformed(name, engine)
    assert (reply.status, reply.stage) == ("error", "optimise")
    message, text = reply.message.strip(), (HERE / f"{name}.issue.md").read_text("utf-8")
    panels = r"Packed\w+\[\d+\]"  # whose rows depend on the processor
    assert re.sub(panels, "", message) in re.sub(panels, "", text)
    assert f" {TRANSFORMED[name][1]} -O " in (HERE / name / "runme.sh").read_text("utf-8")


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant.name} in {plant.release}")
def test_a_planted_graph_is_the_same_for_the_same_seed(plant: Any) -> None:
    first, second = (planted_graph(5, 40, plant.make, plant.release) for _ in range(2))
    assert first.text() == second.text()
    assert any(call.operator == plant.operator for call in first.assignments)


def test_a_planted_fault_is_reduced_and_told(tmp_path: Path) -> None:
    plant = PLANTS[0]
    result = reduce_one(plant, planted_graph(1, 40, plant.make, plant.release), tmp_path)
    assert result is not None
    assert result.is_small
    assert result.is_right
    assert (result.operators, result.elements) == (1, 33)
    text = page([result], [result], 1)
    assert "Of 1 graphs 1 became small" in text
    assert text.count("| sub of fewer elements | 0.21.8 | mismatch | 1 | 1 | 1 (1) | 33 (33) |") == 2


def test_a_fault_in_a_net_reaches_its_output_and_is_reduced(tmp_path: Path) -> None:
    plant = PLANTS[0]
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Tanh(), nn.AvgPool2d(2))
    result = ModelExport(net.eval(), torch.randn(1, 3, 16, 20)).to(TractNNEF(plant.release), tmp_path / "net.tar")
    program = planted_in(result, 3, plant)
    assert program is not None
    net_output, bad = program.outputs
    assert plant.operator in replace(program, outputs=(net_output,)).prune().text()
    assert bad.startswith("planted")
    reduction = reduce_one(plant, program, tmp_path)
    assert reduction is not None
    assert (reduction.is_small, reduction.is_right, reduction.operators, reduction.elements) == (True, True, 1, 33)
