"""Calls in one State: an archive computes the same in each, and a check sees an archive whose scans remember."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF, errors
from t2n_core.check.bisect import find_first_wrong_node
from t2n_core.export.result import ExportResult
from t2n_core.nnef.spec import Spec
from t2n_core.parity.further_runs.batches import Call
from t2n_core.parity.further_runs.kept_states import KEPT_CALLS, plan_calls
from t2n_core.parity.request import CheckRequest
from t2n_core.reduce.case import FailingCase, reduce_case
from t2n_core.releases.judges import Releases
from tests.nets import OfFunction
from tests.releases import NEWEST

NEW = ("0.20.22", "0.21.19", "0.22.4", NEWEST)
OLD = "0.19.15"
LEAKY = ("0.21.19", NEWEST)


class Sequence(nn.Module):
    """The sequence that a recurrent net gives, and with `states` its last states too."""

    def __init__(self, net: nn.Module, *, states: bool = False) -> None:
        super().__init__()
        self.net, self.states = net, states

    def forward(self, x: Tensor) -> Any:
        y, last = self.net(x)
        return (y, last) if self.states else y


class WithStates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.LSTM(8, 6, batch_first=True)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        y, (last_h, last_c) = self.net(x, (h, c))
        return y, last_h, last_c


def triangular(x: Tensor) -> Tensor:
    return torch.linalg.inv(x @ x.mT + 3 * torch.eye(x.shape[1]))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: Sequence(nn.LSTM(8, 6, batch_first=True)),
    "rnn": lambda: Sequence(nn.RNN(8, 6, batch_first=True)),
    "relu": lambda: Sequence(nn.RNN(8, 6, nonlinearity="relu", batch_first=True)),
    "gru": lambda: Sequence(nn.GRU(8, 6, batch_first=True), states=True),
    "bidirectional": lambda: Sequence(nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True)),
    "states": WithStates,
}


def exported(name: str, version: str, folder: Path) -> ExportResult:
    torch.manual_seed(0)
    inputs = {"x": torch.randn(2, 5, 8)}
    if name == "states":
        inputs |= {"h": torch.randn(1, 2, 6), "c": torch.randn(1, 2, 6)}
    export = ModelExport(MODELS[name]().eval(), inputs, dynamic_axes={"x": {1: "T"}})
    return export.to(TractNNEF(version), folder / "model.nnef.tar")


@pytest.fixture
def remembering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let exports write scans that keep their states, as if the release could not reset them."""
    has = Spec.has

    def forgets_the_argument(self: Spec, operator: str, argument: str | None = None) -> bool:
        return argument != "reset_every_turn" and has(self, operator, *([] if argument is None else [argument]))

    monkeypatch.setattr(Spec, "has", forgets_the_argument)
    monkeypatch.setattr("t2n_core.op.recurrent_cells._gru_sequence", lambda *_: None)


@pytest.mark.parametrize("version", NEW)
@pytest.mark.parametrize("name", MODELS)
def test_each_call_in_one_state_is_the_first(name: str, version: str, tmp_path: Path) -> None:
    outcome = exported(name, version, tmp_path).assert_parity()
    assert outcome.facts[KEPT_CALLS] == 3


@pytest.mark.parametrize("version", LEAKY)
@pytest.mark.parametrize("name", MODELS)
def test_scans_that_remember_are_a_mismatch_of_their_own(
    name: str, version: str, tmp_path: Path, remembering: None
) -> None:
    outcome = exported(name, version, tmp_path).check_parity()
    assert outcome.error is not None
    assert outcome.error.error_class == "SecondCallError"
    assert "in one State" in outcome.error.message
    with pytest.raises(errors.SecondCallError, match="gives other outputs than the same inputs in a fresh State"):
        outcome.raise_for_failure()


def test_bisect_names_the_operator_that_remembers(tmp_path: Path, remembering: None) -> None:
    wrong_node = find_first_wrong_node(exported("lstm", NEWEST, tmp_path))
    assert wrong_node.kind == "aten::lstm.input"


def test_a_second_call_is_reduced_to_the_scan(tmp_path: Path, remembering: None) -> None:
    result = exported("bidirectional", "0.21.19", tmp_path)
    case = FailingCase(CheckRequest(result.archive, result.samples, result.output_names), result.target.resolved)
    with Releases(offline=True) as releases:
        reduction = reduce_case(case, tmp_path / "reduced", releases, oracle="float64", seconds=40)
    assert [assignment.operator for assignment in reduction.reduced.program.assignments] == ["tract_core_scan"]


def test_a_release_that_keeps_all_states_says_so_in_the_notes(tmp_path: Path) -> None:
    result = exported("lstm", OLD, tmp_path)
    assert result.notes == (
        f"tract {OLD} starts a scan from the final state of the last call in a State: use a fresh State for each call",
    )
    assert KEPT_CALLS not in result.assert_parity().facts


@pytest.mark.parametrize("version", ["0.21.5", "0.21.7", "0.21.8"])
def test_releases_whose_states_keep_sizes(version: str, tmp_path: Path) -> None:
    outcome = exported("rnn", version, tmp_path).assert_parity()
    assert outcome.facts[KEPT_CALLS] == (3 if version == "0.21.8" else 2)


@pytest.mark.parametrize("version", NEW)
def test_loops_of_factors_begin_anew(version: str, tmp_path: Path) -> None:
    x = torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(1))
    export = ModelExport(OfFunction(triangular), {"x": x}, dynamic_axes={"x": {0: "B"}})
    result = export.to(TractNNEF(version), tmp_path / "model.nnef.tar")
    assert any(operation.name == "tract_core_scan" for operation in result.graph.operations)
    result.assert_parity("very")


def planned(result: ExportResult) -> list[Call]:
    plan = plan_calls(result.target.engine().kept_states, result.archive, result.samples)
    assert plan is not None
    return list(plan.calls)


def test_the_smallest_sample_runs_again_after_itself_other_inputs_and_another_size(tmp_path: Path) -> None:
    result = exported("lstm", NEWEST, tmp_path)
    samples = result.samples
    calls = planned(result)
    (first,) = {batch for _, batch in calls}
    before = [samples[index] for index, _ in calls]
    assert samples[first].sizes == {"T": 5}
    assert before[0] is samples[first]
    assert before[1].sizes == {"T": 5}
    assert before[1] is not before[0]
    assert before[2].sizes == {"T": 1}


def test_an_archive_without_a_state_has_one_call_more(tmp_path: Path) -> None:
    result = ModelExport(nn.Linear(8, 6), torch.randn(2, 8)).to(TractNNEF(NEWEST), tmp_path / "model.nnef.tar")
    assert len(planned(result)) == 1
    assert result.assert_parity().facts[KEPT_CALLS] == 1


def test_the_call_of_an_archive_without_a_state_is_the_smallest(tmp_path: Path) -> None:
    export = ModelExport(nn.Linear(8, 6), {"input": torch.randn(2, 8)}, dynamic_axes={"input": {0: "B"}})
    result = export.to(TractNNEF(NEWEST), tmp_path / "model.nnef.tar")
    ((before, again),) = planned(result)
    assert result.samples[again].sizes == {"B": 1}
    assert result.samples[before].sizes["B"] > 1
