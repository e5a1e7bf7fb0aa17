"""Who is wrong where an archive and its model differ: faults in graphs, and errors of a release."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ExportResult, ModelExport, TractNNEF
from t2n_core.check.mismatch import author
from t2n_core.engine.protocol import EngineReply
from t2n_core.errors import MeaningError
from t2n_core.parity.evaluation.evaluator import Evaluator
from t2n_core.parity.stage import AUTHOR
from tests.nets import net_of
from tests.releases import NEWEST

NET = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 4), nn.Sigmoid())
EXPORTER = {
    "another function": (r"= tanh\(", "= sin("),
    "the wrong sign": (r"= tanh\((\w+)\)", r"= tanh(-1.0 * \1)"),
    "a scale": (r"= sigmoid\((\w+)\)", r"= sigmoid(\1 * 1.01)"),
    "an offset": (r"= sigmoid\((\w+)\)", r"= sigmoid(\1 + 0.01)"),
    "one operation too many": (r"= sigmoid\((\w+)\)", r"= sigmoid(relu(\1))"),
}


def exported(model: nn.Module, inputs: Any, folder: Path, **options: Any) -> ExportResult:
    return ModelExport(model.eval(), inputs, **options).to(TractNNEF(NEWEST, check_io=False), folder)


def rewrite(result: ExportResult, pattern: str, text: str) -> None:
    """Change the text of a graph, as a fault of the exporter or of a hand would."""
    file = result.archive / "graph.nnef"
    before = file.read_text()
    after = re.sub(pattern, text, before, count=1)
    assert after != before
    file.write_text(after)


@pytest.mark.parametrize(("pattern", "text"), EXPORTER.values(), ids=EXPORTER)
def test_a_graph_that_says_something_else_is_the_exporters(pattern: str, text: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    result = exported(
        NET, {"x": 2 * torch.randn(3, 5)}, tmp_path / "net", input_names=["x"], dynamic_axes={"x": {0: "B"}}
    )
    assert result.check_parity().passed
    rewrite(result, pattern, text)
    outcome = result.check_parity()
    assert outcome.facts[AUTHOR] == "exporter"
    assert "who is wrong (at B=3): the exporter: the engine computes what the archive says" in outcome.describe()


def test_operands_that_do_not_fit_are_the_exporters(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = net_of(lambda _, x: torch.softmax(x @ x.mT, -1) @ x)
    result = exported(net, {"x": torch.randn(2, 7, 4)}, tmp_path / "net", input_names=["x"])
    rewrite(result, r"matmul\(x, mT_transpose\)", "matmul(x, x)")
    request = result.check_request(mismatch_criteria(result))
    # whether an engine computes something of them or not
    assert author.author_of(result.target.engine(), request, request.samples[0]) == "exporter"


def test_an_evaluation_without_end_has_no_author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = exported(NET, {"x": torch.randn(3, 5)}, tmp_path / "net", input_names=["x"])
    monkeypatch.setattr(author, "_MOST_SECONDS", 0.0)
    request = result.check_request(mismatch_criteria(result))
    verdict = author.author_of(result.target.engine(), request, request.samples[0])
    assert re.match(r"not known, since the evaluation took longer than 0 seconds, in `\w+ = ", str(verdict))


def test_an_archive_that_keeps_its_state_is_the_exporters(tmp_path: Path) -> None:
    torch.manual_seed(0)
    result = exported(nn.GRU(5, 7, batch_first=True), {"input": torch.randn(2, 6, 5)}, tmp_path / "net")
    assert result.check_parity().passed
    rewrite(result, ", reset_every_turn = 1", "")
    assert result.check_parity().facts[AUTHOR] == "exporter"


def test_the_side_that_is_much_farther_from_the_definitions_is_named(tmp_path: Path) -> None:
    """A group norm without its small factor makes large values of the engine's rounding."""
    torch.manual_seed(1)
    net = nn.Sequential(nn.Conv1d(4, 6, 3), nn.GroupNorm(3, 6), nn.SiLU(), nn.AvgPool1d(2))
    result = exported(net, torch.randn(2, 4, 13), tmp_path / "net")
    rewrite(result, r"= mul\(", "= max(")
    assert result.check_parity().facts[AUTHOR] == "exporter"


class Undecided(nn.Module):
    """The sign of a sum that is 0 but for rounding, in a model that cannot run in float64."""

    def __init__(self, total: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("total", total)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype != torch.float32:
            raise TypeError("this model is for float32")
        return torch.sign(x.sum(-1) - self.total) + 2


@pytest.mark.parametrize("seed", [2, 6, 9, 11])
def test_what_rounding_decides_is_nobodys(seed: int, tmp_path: Path) -> None:
    """Engine and definitions agree on a sign by chance, and PyTorch's rounding gives another one."""
    torch.manual_seed(seed)
    x = torch.randn(1, 700)
    outcome = exported(Undecided(x.sum(-1)), x, tmp_path / "net", input_names=["x"]).check_parity()
    assert outcome.status == "mismatch"
    assert AUTHOR not in outcome.facts
    assert "who is wrong: not known, since inputs and weights that differ by rounding" in outcome.describe()


_DEBOX = (
    "debox(x, size = [1, 1, 2, 2], stride = [1, 1, 2, 2], padding = [(0, 0), (0, 0), (0, 0), (0, 0)], "
    "border = 'constant', dilation = [1, 1, 1, 1], normalize = true)"
)
ENGINE = {
    "softplus of large values": (nn.functional.softplus, torch.tensor([95.0, -3.0, 2.0]), "softplus(x)"),
    "round of a negative half": (torch.round, torch.tensor([-2.5, 3.2, -0.4]), "round(x)"),
    "debox": (lambda x: x.repeat_interleave(2, 2).repeat_interleave(2, 3) / 4, torch.randn(1, 2, 3, 5), _DEBOX),
}


@pytest.mark.parametrize(("function", "x", "text"), ENGINE.values(), ids=ENGINE)
def test_an_operation_that_a_release_computes_wrongly_is_the_engines(
    function: Any, x: torch.Tensor, text: str, tmp_path: Path
) -> None:
    net = net_of(lambda _, x: torch.tanh(function(x) / 64))
    result = exported(net, {"x": x}, tmp_path / "net", input_names=["x"], output_names=["y"])
    assert result.check_parity().passed
    file = result.archive / "graph.nnef"
    head, _, body = file.read_text().partition("{")
    external = body.strip().splitlines()[0]
    file.write_text(f"{head}{{\n{external}\n  z = {text};\n  y = tanh(z * 0.015625);\n}}\n")
    outcome = result.check_parity()
    assert outcome.facts[AUTHOR] == "engine"
    assert "who is wrong: the engine: by the definitions of its operators" in outcome.describe()


def test_an_archive_that_cannot_be_evaluated_has_no_author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = exported(NET, {"x": torch.randn(3, 5)}, tmp_path / "net", input_names=["x"])
    rewrite(result, r"= tanh\(", "= sin(")

    for error in (MeaningError("the evaluation took longer than 10 seconds"), AssertionError("no such case")):

        def refuse(*_: Any, error: Exception = error, **__: Any) -> Any:
            raise error

        monkeypatch.setattr(Evaluator, "evaluate", refuse)
        outcome = result.check_parity()
        assert outcome.status == "mismatch"
        assert AUTHOR not in outcome.facts
        assert f"who is wrong: not known, since {error}" in outcome.describe()
    monkeypatch.setattr(author, "_MOST_BYTES", 10)
    assert "who is wrong" not in result.check_parity().describe()


def test_an_engine_that_dies_at_the_second_run_gets_no_author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = exported(NET, {"x": torch.randn(3, 5)}, tmp_path / "net", input_names=["x"])
    rewrite(result, r"= tanh\(", "= sin(")
    engine = result.target.engine()
    mismatch = result.check_parity()

    class Dead:
        name = "tract"

        def run(self, *_: Any, **__: Any) -> EngineReply:
            return EngineReply("crash", "run")

    plain = author.with_author(mismatch, engine, result.check_request(mismatch_criteria(result)))
    assert plain.facts[AUTHOR] == "exporter"
    dead: Any = Dead()
    assert author.with_author(mismatch, dead, result.check_request(mismatch_criteria(result))) is mismatch


def mismatch_criteria(result: ExportResult) -> Any:
    from t2n_core.check.exported.parity import criteria_for

    return criteria_for(result)
