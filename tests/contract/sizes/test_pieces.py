"""Pieces of a sequence in real engines: an archive with state that gives other outputs in pieces is seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF, errors
from t2n_core.check.bisect import find_first_wrong_node
from t2n_core.errors import InputError
from t2n_core.export.result import ExportResult
from t2n_core.nnef.reading.members import unpack_members
from t2n_core.parity.check import check_parity
from t2n_core.parity.further_runs.kept_states import KEPT_CALLS
from t2n_core.parity.further_runs.pieces import COMPARED_PIECES, DIFFERENT, PIECES
from t2n_core.parity.judging.judgement import Judgement
from tests.contract.export.state.test_state import Attention, Convolution, Recurrent
from tests.contract.export.state.test_state import example as example_of
from tests.releases import NEWEST

VERSIONS = ("0.19.15", "0.21.19", NEWEST)
RESULTS = re.compile(r"^(graph .*)", re.MULTILINE)
SMALL = 2e-4
"""Share of a planted fault that the level of the check accepts."""


class Tagger(nn.Module):
    """A recurrent net with a head, in pieces."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = getattr(nn, kind)(6, 5, batch_first=True, **options)
        self.head = nn.LazyLinear(3)

    def forward(self, x: Tensor, hx: Any) -> Any:
        y, hx = self.net(x, hx)
        return self.head(y), hx


class Centred(nn.Module):
    """Means over three steps, with zeros around each piece, and the sum of all."""

    def forward(self, x: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        return nn.functional.avg_pool1d(x.mT, 3, 1, 1).mT, total + x.sum(1)


def exported(model: nn.Module, folder: Path, version: str = NEWEST, steps: int = 4, **more: Any) -> ExportResult:
    torch.manual_seed(1)
    x = torch.randn(2, steps, 6)
    if isinstance(model, Centred):
        inputs: dict[str, Any] = {"x": x, "total": torch.randn(2, 6)}
    else:
        hx = torch.randn(2 if getattr(model.net, "bidirectional", False) else 1, 2, 5)
        inputs = {"x": x, "hx": (hx, hx + 0.5) if isinstance(model.net, nn.LSTM) else hx}
        model(**inputs)
    state = {"total" if isinstance(model, Centred) else "hx": 1}
    options = {"state": state, "dynamic_axes": {"x": {1: "T"}}, "output_names": ["tags"], **more}
    return ModelExport(model.eval(), inputs, **options).to(TractNNEF(version), folder / "m.nnef.tar")


def edited(result: ExportResult, folder: Path, edit: Callable[[str], str]) -> ExportResult:
    (folder / "edited").mkdir()
    unpack_members(result.archive, folder / "edited", most=1 << 20)
    graph = folder / "edited" / "graph.nnef"
    before = graph.read_text()
    graph.write_text(edit(before))
    assert graph.read_text() != before
    return replace(result, archive=folder / "edited")


def scaled(output: str, factor: float) -> Callable[[str], str]:
    """Return an edit that multiplies an output of the graph."""

    def edit(text: str) -> str:
        head, results, body = RESULTS.split(text, maxsplit=1)
        body = re.sub(rf"\b{output}\b", "before", body)
        return f"{head}{results}{body[: body.rindex('}')]}  {output} = before * {factor};\n}}\n"

    return edit


def swapped(one: str, other: str) -> Callable[[str], str]:
    """Return an edit that gives two outputs of the graph in each other's place."""
    names = re.compile(rf"\b(?:{one}|{other})\b")

    def edit(text: str) -> str:
        head, results, body = RESULTS.split(text, maxsplit=1)
        return f"{head}{results}{names.sub(lambda name: other if name[0] == one else one, body)}"

    return edit


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("version", VERSIONS)
def test_pieces_of_a_recurrent_net_are_compared_and_counted(kind: str, version: str, tmp_path: Path) -> None:
    outcome = exported(Tagger(kind), tmp_path, version).assert_parity()
    assert outcome.facts[COMPARED_PIECES] == 2
    assert PIECES not in outcome.facts


@pytest.mark.parametrize("kind", [Attention, Recurrent, Convolution])
def test_state_of_each_kind_is_fed_back(kind: type[nn.Module], tmp_path: Path) -> None:
    torch.manual_seed(1)
    call, state, axes = example_of(model := kind().eval())
    outcome = (
        ModelExport(model, call, state=state, dynamic_axes=axes)
        .to(TractNNEF(NEWEST), tmp_path / "m.tar")
        .assert_parity()
    )
    assert outcome.facts[COMPARED_PIECES] == 2
    assert PIECES not in outcome.facts


@pytest.mark.parametrize("model", [Tagger("LSTM", bidirectional=True), Centred()], ids=["bidirectional", "centred"])
def test_pieces_that_differ_in_the_model_are_a_fact(model: nn.Module, tmp_path: Path) -> None:
    outcome = exported(model, tmp_path).assert_parity()
    assert (outcome.facts[COMPARED_PIECES], outcome.facts[PIECES]) == (2, DIFFERENT)


@pytest.mark.parametrize("output", ["out_hx_0", "out_hx_1"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_state_that_is_off_by_less_than_the_level_is_a_mismatch(output: str, version: str, tmp_path: Path) -> None:
    wrong = edited(exported(Tagger("LSTM"), tmp_path, version), tmp_path, scaled(output, 1 + SMALL))
    outcome = wrong.check_parity()
    assert outcome.error is not None
    assert outcome.error.error_class == "PiecesError", outcome.describe()
    assert outcome.facts[COMPARED_PIECES] == 2
    with pytest.raises(errors.PiecesError, match=r"in 2 pieces at T=\d+ gives other outputs than the whole: tags"):
        outcome.raise_for_failure()
    with pytest.raises(InputError, match="pieces of a sequence"):
        find_first_wrong_node(wrong)


def test_swapped_states_are_seen_where_nobody_compares_them(tmp_path: Path) -> None:
    wrong = edited(exported(Tagger("LSTM"), tmp_path), tmp_path, swapped("out_hx_0", "out_hx_1"))
    outcome = wrong.check_parity(atol={"out_hx_0": 9.0, "out_hx_1": 9.0}, rtol={"out_hx_0": 0.0, "out_hx_1": 0.0})
    assert outcome.error is not None
    assert outcome.error.error_class == "PiecesError", outcome.describe()


def test_a_fault_in_one_output_is_seen_beside_one_that_differs_in_the_model(tmp_path: Path) -> None:
    wrong = edited(exported(Centred(), tmp_path), tmp_path, scaled("out_total", 1 + SMALL))
    error = wrong.check_parity().error
    assert error is not None
    assert error.error_class == "PiecesError"
    assert error.message.endswith("than the whole: out_total")


def test_a_fixed_length_and_a_sequence_without_state_have_no_pieces(tmp_path: Path) -> None:
    fixed = exported(Tagger("GRU"), tmp_path, dynamic_axes=None).assert_parity()
    assert COMPARED_PIECES not in fixed.facts
    plain = ModelExport(nn.Linear(6, 2), {"input": torch.randn(2, 4, 6)}, dynamic_axes={"input": {1: "T"}})
    assert COMPARED_PIECES not in plain.to(TractNNEF(NEWEST), tmp_path / "p.tar").assert_parity().facts


def test_calls_in_kept_states_are_checked_beside_pieces(tmp_path: Path) -> None:
    facts = exported(Tagger("GRU"), tmp_path).assert_parity().facts
    assert facts[KEPT_CALLS]
    assert facts[COMPARED_PIECES] == 2


def test_the_request_of_a_result_is_the_check_that_it_makes(tmp_path: Path) -> None:
    result = exported(Tagger("GRU"), tmp_path)
    request = result.check_request(Judgement(), 50.0)
    outcome, expected = check_parity(result.target.engine(), request), result.check_parity("approximate", timeout=50.0)
    assert outcome.facts[COMPARED_PIECES] == 2
    for name in ("status", "level", "required", "outputs", "sizes", "range", "refused_sizes", "archive_sha256"):
        assert getattr(outcome, name) == getattr(expected, name), name
    assert request.timeout == 50.0
