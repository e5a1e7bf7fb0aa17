"""States of any tree: the engine, fed with its own outputs, computes what a program's loop over the model does.

Random trees are those of `python -m conformance.lab.fuzz --states`, in `tests/contract/test_fuzz.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.check.bisect import find_first_wrong_node
from t2n_core.engine.protocol import Engine
from t2n_core.errors import CallsError, InputError
from t2n_core.export.result import ExportResult
from t2n_core.parity.check import check_parity
from t2n_core.parity.further_runs.calls import COMPARED_CALLS
from t2n_core.parity.judging.judgement import Judgement
from tests.releases import NEWEST

VERSIONS = ("0.21.19", NEWEST)
CALLS = 5


class Step(nn.Module):
    """A net that computes a function of its input and its state."""

    def __init__(self, function: Callable[[torch.Tensor, Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor, state: Any) -> Any:
        return self.function(x, state)


def export(model: nn.Module, state: Any, key: Any, version: str, folder: Path, **options: Any) -> ExportResult:
    made = ModelExport(model, {"x": torch.randn(1, 2), "state": state}, state={"state": key}, **options)
    return made.to(TractNNEF(version, check_io=False), folder / "model.nnef.tar")


def assert_loops_agree(result: ExportResult, model: nn.Module, state: Any, next_of: Any, engine: Engine) -> None:
    """Compare a loop over the engine with one over the model, from zeros on.

    `next_of` returns the regular outputs and the next state of a result.
    """
    torch.manual_seed(3)
    fed = {pair.input: pair.initial for pair in result.state}
    other_names = [name for name in result.input_names if name != "x" and name not in fed]
    for _ in range(CALLS):
        x = torch.randn(1, 2)
        inputs = {"x": x.numpy(), **dict.fromkeys(other_names, np.zeros((1, 2), np.float32)), **fed}
        reply = engine.run(result.archive, [[inputs[name] for name in result.input_names]])
        assert reply.status == "ok", reply.message
        results = dict(zip(result.output_names, reply.outputs[0], strict=True))
        fed = {pair.input: results.pop(pair.output) for pair in result.state}
        outputs, state = next_of(model(x, state))
        assert len(results) == len(outputs)
        for got, expected in zip(results.values(), outputs, strict=True):
            np.testing.assert_allclose(got, expected.detach().numpy(), atol=1e-5)


def zeros(count: int) -> list[torch.Tensor]:
    return [torch.zeros(1, 2) for _ in range(count)]


CELL = nn.GRUCell(2, 2)
MODELS: dict[str, tuple[Any, Callable[[Sequence[torch.Tensor]], Any]]] = {
    "a delay line": (lambda x, s: (x + 10 * s[0] + 100 * s[1], (x.clone(), s[0])), tuple),
    "a dict in another order": (
        lambda x, s: (s["h"] - s["c"], {"c": s["c"] + s["h"].abs() + x, "h": 0.5 * s["h"] + x}),
        lambda parts: dict(zip("hc", parts, strict=True)),
    ),
    "the output is the state": (lambda x, s: (CELL(x, s),) * 2, lambda parts: parts[0]),
    "two places take turns": (lambda x, s: (s[0] + x, (s[1] + x, s[0])), list),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", MODELS)
def test_loops_agree(name: str, version: str, tmp_path: Path, tract_engine: Any) -> None:
    function, tree = MODELS[name]
    model = Step(function).eval()
    torch.manual_seed(1)
    result = export(model, tree([torch.randn(1, 2), torch.randn(1, 2)]), 1, version, tmp_path)
    assert result.assert_parity().facts[COMPARED_CALLS] == 4
    assert_loops_agree(result, model, tree(zeros(2)), lambda outputs: ([outputs[0]], outputs[1]), tract_engine(version))


def test_archives_of_one_capture_share_the_calls(tmp_path: Path) -> None:
    function, tree = MODELS["a delay line"]
    state = tree([torch.randn(1, 2), torch.randn(1, 2)])
    captured = ModelExport(Step(function).eval(), {"x": torch.randn(1, 2), "state": state}, state={"state": 1})
    requests = [
        captured.to(TractNNEF(version, check_io=False), tmp_path / f"{version}.nnef.tar").check_request(
            Judgement.of(None)
        )
        for version in VERSIONS
    ]
    assert requests[0].calls
    assert requests[0].calls is requests[1].calls


def test_a_wrong_pair_is_found_by_calls_in_a_row(tmp_path: Path) -> None:
    """Each call alone is right: only a loop shows that the values go to the wrong inputs."""
    function, tree = MODELS["a delay line"]
    torch.manual_seed(1)
    result = export(Step(function).eval(), tree([torch.randn(1, 2), torch.randn(1, 2)]), 1, NEWEST, tmp_path)
    request = result.check_request(Judgement.of(None))
    (first, last), (second, other) = request.state
    swapped = replace(request, state=[(first, other), (second, last)])
    outcome = check_parity(result.target.engine(), swapped)
    with pytest.raises(CallsError, match="call 2 of 4 in a row gives other outputs than the model"):
        outcome.raise_for_failure()
    with pytest.raises(InputError, match="or calls in a row"):
        find_first_wrong_node(result, outcome=outcome)
    assert check_parity(result.target.engine(), request).passed
