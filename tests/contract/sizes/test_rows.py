"""Rows of a dynamic batch: a check sees rows that depend on each other in the engine and not in the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from conformance.lab.plant.mutants.tamper import leaks
from t2n_core import ModelExport, TractNNEF, errors
from t2n_core.check.bisect import find_first_wrong_node
from t2n_core.errors import InputError
from t2n_core.export.result import ExportResult
from t2n_core.nnef.reading.members import unpack_members
from t2n_core.parity.check import check_parity
from t2n_core.parity.further_runs.rows import DEPENDENT, KEPT_ROWS, ROWS, UNKNOWN, replace_rows
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.reduce.case import FailingCase, reduce_case
from t2n_core.releases.judges import Releases
from tests.nets import OfFunction
from tests.releases import NEWEST

VERSIONS = ("0.19.15", "0.21.19", NEWEST)
SMALL = 2e-5
"""Share of a planted leak that the level of the check accepts."""


def exported(net: nn.Module, folder: Path, version: str = NEWEST) -> ExportResult:
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(3))
    return ModelExport(net.eval(), {"x": x}, dynamic_axes={"x": {0: "B"}}).to(TractNNEF(version), folder / "m.nnef.tar")


def layers() -> nn.Module:
    torch.manual_seed(0)
    return OfFunction(nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 4)))


def with_leak(result: ExportResult, folder: Path, kind: str, share: float) -> ExportResult:
    (folder / "leaky").mkdir()
    unpack_members(result.archive, folder / "leaky", most=1 << 20)
    graph = folder / "leaky" / "graph.nnef"
    graph.write_text(next(text for _, text in leaks(graph.read_text(), share)[kind]))
    return replace(result, archive=folder / "leaky")


@pytest.mark.parametrize("version", VERSIONS)
def test_independent_rows_are_compared_and_counted(version: str, tmp_path: Path) -> None:
    outcome = exported(layers(), tmp_path, version).assert_parity()
    assert outcome.facts[KEPT_ROWS] == 1
    assert ROWS not in outcome.facts


@pytest.mark.parametrize("kind", ["mean", "first", "largest"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_leak_between_rows_below_the_level_is_a_mismatch_of_its_own(kind: str, version: str, tmp_path: Path) -> None:
    leaky = with_leak(exported(layers(), tmp_path, version), tmp_path, kind, SMALL)
    outcome = leaky.check_parity()
    assert outcome.error is not None
    assert outcome.error.error_class == "RowsError", outcome.describe()
    with pytest.raises(errors.RowsError, match="B=3 gives other outputs when the other rows change: output"):
        outcome.raise_for_failure()


@pytest.mark.parametrize("kind", ["mean", "first", "largest"])
def test_a_large_leak_is_a_mismatch_with_the_model(kind: str, tmp_path: Path) -> None:
    outcome = with_leak(exported(layers(), tmp_path), tmp_path, kind, 1.0).check_parity()
    assert outcome.error is not None
    assert outcome.error.error_class == "ParityError"


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x - x.mean(0, keepdim=True),
        lambda x: x.softmax(0),
        lambda x: x.cumsum(0),
        lambda x: torch.round(x / (x.abs().max() / 127)) * (x.abs().max() / 127),
    ],
    ids=["norm", "softmax", "time", "quantised"],
)
def test_rows_that_depend_on_each_other_in_the_model_are_a_fact(
    function: Callable[[Tensor], Tensor], tmp_path: Path
) -> None:
    result = exported(OfFunction(function), tmp_path)
    outcome = result.assert_parity()
    assert (outcome.facts[KEPT_ROWS], outcome.facts[ROWS]) == (1, DEPENDENT)
    without = check_parity(result.target.engine(), CheckRequest(result.archive, result.samples, result.output_names))
    assert without.passed
    assert without.facts[ROWS] == UNKNOWN


def test_a_fixed_batch_and_one_of_one_row_have_no_such_check() -> None:
    row = torch.ones(1, 5).numpy()
    fixed = [Sample((row,), (row,)), Sample((2 * row,), (row,))]
    assert replace_rows(fixed) is None
    assert replace_rows([Sample((row,), (row,), {"B": 1}), Sample((row[:0],), (row[:0],), {"B": 0})]) is None


def test_bisect_looks_at_the_replaced_rows(tmp_path: Path) -> None:
    leaky = with_leak(exported(layers(), tmp_path), tmp_path, "mean", SMALL)
    assert "no wrong node" in find_first_wrong_node(leaky).describe()  # an export anew has no leak


def test_reduce_says_that_it_cannot(tmp_path: Path) -> None:
    leaky = with_leak(exported(layers(), tmp_path), tmp_path, "mean", SMALL)
    case = FailingCase(CheckRequest(leaky.archive, leaky.samples, leaky.output_names), leaky.target.resolved)
    with Releases(offline=True) as releases, pytest.raises(InputError, match="rows of a batch"):
        reduce_case(case, tmp_path / "reduced", releases, seconds=20)
