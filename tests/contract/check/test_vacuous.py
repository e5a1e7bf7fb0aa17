"""An archive of another model does not pass for want of spread in the example: it is caught, or the pass is weak."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.parity.stage import Status
from tests.releases import NEWEST

TIME = {"x": {1: "T"}}


class Net(nn.Module):
    """Computes `compute(self, *inputs)` with weights that a seed decides."""

    def __init__(self, seed: int, compute: Callable[..., Tensor]) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.linear, self.embedding, self.big = nn.Linear(8, 8), nn.Embedding(50, 8), nn.Linear(8, 3000)
        with torch.no_grad():
            self.linear.bias.copy_(torch.arange(8.0) / 8)
        self.compute = compute

    def forward(self, x: Tensor) -> Tensor:
        return self.compute(self, x)


class Net2(Net):
    """The same with two inputs."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return self.compute(self, x, y)


def linear(m: Any, x: Tensor) -> Tensor:
    return m.linear(x)


def zeros(m: Any, x: Tensor) -> Tensor:
    return m.linear(x) * 0


def noise() -> Tensor:
    return torch.randn(2, 7, 8, generator=torch.Generator().manual_seed(5))


def masked(m: Any, x: Tensor, keep: Tensor) -> Tensor:
    return (m.linear(x) * keep[..., None]).sum(1)


def masked_by_length(m: Any, x: Tensor, lengths: Tensor) -> Tensor:
    return masked(m, x, torch.arange(x.shape[1])[None] < lengths[:, None])


def unmasked(m: Any, x: Tensor, y: Tensor) -> Tensor:
    return (m.linear(x) + 0 * y.reshape(2, -1, 1)[:, :1]).sum(1)


def permuted(m: Any, x: Tensor) -> Tensor:
    return F.linear(x, m.linear.weight.flip(1), m.linear.bias)


ANSWER = Net(1, linear)(noise()).detach()


CAUGHT = {
    "zeros, other weights": (Net(1, linear), Net(2, linear), {"x": torch.zeros(2, 7, 8)}, TIME, "exact"),
    "ones, permuted features": (Net(1, linear), Net(1, permuted), {"x": torch.ones(2, 7, 8)}, TIME, None),
    "zero tokens, row 0 alone": (
        Net(1, lambda m, x: m.embedding(x)),
        Net(1, lambda m, x: m.embedding(x * 0)),
        {"x": torch.zeros(2, 7, dtype=torch.long)},
        TIME,
        "exact",
    ),
    "all true, mask ignored": (
        Net2(1, masked),
        Net2(1, unmasked),
        {"x": noise(), "y": torch.ones(2, 7, dtype=torch.bool)},
        None,
        None,
    ),
    "lengths of T, ignored": (
        Net2(1, masked_by_length),
        Net2(1, unmasked),
        {"x": noise(), "y": torch.tensor([7, 7])},
        None,
        None,
    ),
    "softmax of 3,000, uniform": (
        Net(1, lambda m, x: m.big(x).softmax(-1)),
        Net(1, lambda m, x: (m.big(x) * 0).softmax(-1)),
        {"x": noise()},
        TIME,
        None,
    ),
    "saturated, a constant": (
        Net(1, lambda m, x: torch.sigmoid(100 * (m.linear(x) + 5))),
        Net(1, lambda m, x: m.linear(x) * 0 + 1),
        {"x": noise()},
        TIME,
        None,
    ),
    "static, the example's outputs": (Net(1, linear), Net(1, lambda m, x: x * 0 + ANSWER), {"x": noise()}, None, None),
    "static, a frozen branch": (
        Net(1, lambda m, x: torch.where(x.sum() > 0, x * 2, x - 1)),
        Net(1, lambda m, x: x * 2),
        {"x": noise().abs()},
        None,
        None,
    ),
}
WEAK = {
    "tiny outputs, zeros": (Net(1, lambda m, x: m.linear(x) * 1e-5), Net(1, zeros), {"x": noise()}, TIME, None),
    "small outputs, a loose level": (
        Net(1, lambda m, x: m.linear(x).tanh() * 4e-2),
        Net(1, zeros),
        {"x": noise()},
        TIME,
        "very",
    ),
    "flat softmax, a loose level": (
        Net(1, lambda m, x: (m.linear(x) * 0.3).softmax(-1)),
        Net(1, lambda m, x: (m.linear(x) * 0).softmax(-1)),
        {"x": noise()},
        TIME,
        "ultra",
    ),
    "dead relu": (Net(1, lambda m, x: torch.relu(m.linear(x) - 1000)), Net(1, zeros), {"x": noise()}, TIME, "exact"),
}

INFINITE = {
    "saturated": tuple(Net(1, lambda m, x, by=by: torch.sigmoid(by + x)) for by in (1000, 30)),
    "threshold": tuple(Net(1, lambda m, x, by=by: (x > by).to(torch.float32)) for by in (500000, 60)),
    "clamped": tuple(Net(1, lambda m, x, by=by: torch.clamp(x * by, -1, 1)) for by in (1e-9, 1e-6)),
    "tiny tanh": tuple(Net(1, lambda m, x, by=by: torch.tanh(x * by)) for by in (1e-9, 1e-6)),
    "dead zone": tuple(Net(1, lambda m, x, by=by: torch.sign(F.hardshrink(x, by))) for by in (1e9, 1e3)),
}
"""A model and a wrong one, whose outputs move for infinite inputs alone."""


def judged(folder: Path, right: nn.Module, wrong: nn.Module, inputs: Any, axes: Any, level: str | None) -> Any:
    """Return the outcome of the wrong model's archive, judged by the right model."""
    target = TractNNEF(NEWEST, check_io=False, dynamic_axes=axes or {})
    results = [
        ModelExport(model.eval(), inputs, dynamic_axes=axes).to(target, folder / f"{index}.tar")
        for index, model in enumerate((right, wrong))
    ]
    return dataclasses.replace(results[0], archive=results[1].archive).check_parity(level)


@pytest.mark.parametrize("case", CAUGHT)
def test_the_archive_of_another_model_is_caught(tmp_path: Path, case: str) -> None:
    right, wrong, *rest = CAUGHT[case]
    outcome = judged(tmp_path, right, wrong, *rest)
    if outcome.status is Status.WEAK:  # then the right model's own archive is weak as well
        pytest.fail(outcome.describe())
    assert outcome.status is Status.MISMATCH, outcome.describe()
    assert judged(tmp_path, right, right, *rest[:-1], None).passed


@pytest.mark.parametrize("case", WEAK)
def test_what_one_constant_passes_for_is_weak(tmp_path: Path, case: str) -> None:
    right, wrong, *rest = WEAK[case]
    for model in (right, wrong):
        outcome = judged(tmp_path, right, model, *rest)
        assert outcome.status is Status.WEAK, outcome.describe()
        assert "1 of 1 outputs prove little: output moves by" in outcome.describe()


@pytest.mark.parametrize("case", INFINITE)
def test_outputs_that_move_for_infinite_inputs_alone_prove_little(tmp_path: Path, case: str) -> None:
    for model in INFINITE[case]:
        outcome = judged(tmp_path, INFINITE[case][0], model, {"x": noise()}, None, None)
        assert outcome.status is not Status.PASS, outcome.describe()


def test_a_constant_that_no_input_reaches_is_no_weakness(tmp_path: Path) -> None:
    class Positions(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x * 2, torch.arange(x.shape[1])

    outcome = judged(tmp_path, Positions(), Positions(), {"x": noise()}, TIME, None)
    assert outcome.status is Status.PASS, outcome.describe()
    assert [output.weak for output in outcome.outputs] == ["", ""]
    assert outcome.outputs[0].moves
    assert not outcome.outputs[1].moves
