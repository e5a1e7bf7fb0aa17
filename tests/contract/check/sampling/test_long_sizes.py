"""A check finds an error that grows with each step, and says at which long size it looked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from t2n_core import ModelExport, TractNNEF
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op.aten import cumulative
from t2n_core.op.aten.running import Running, running
from t2n_core.parity.outcome import Outcome, Status
from t2n_core.parity.samples import LONG_SIZES
from tests.nets import OfFunction, net_of
from tests.releases import NEWEST

DRIFT = 1e-7
"""Relative error of each step: nothing at the usual sizes, and 1 % after 100,000 steps."""


def check(net: Callable[[Tensor], Any], path: Path, version: str, dim: Any = "T") -> Outcome:
    example = torch.rand(1, 40, generator=torch.Generator().manual_seed(0)) + 0.5
    export = ModelExport(OfFunction(net).eval(), example, input_names=["x"], dynamic_axes={"x": {1: dim}})
    return export.to(TractNNEF(version, check_io=False), path / "model.nnef.tar").check_parity()


@pytest.fixture
def drifting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make running operators wrong by `DRIFT` in each step."""

    def drift(g: Emitter, x: Value, axis: int, kind: Running) -> Value:
        grown = g.add(g.mul(g.cast(g.positions(x.shape[axis]), x.dtype), DRIFT), 1.0)
        return g.mul(running(g, x, axis, kind), g.unsqueeze(grown, axes=[0]))

    monkeypatch.setattr(cumulative, "running", drift)


@pytest.mark.usefixtures("drifting")
@pytest.mark.parametrize("net", [lambda x: x.cumsum(1), lambda x: (1 + x * 1e-5).cumprod(1)])
def test_a_drift_of_each_step(net: Callable[[Tensor], Any], tmp_path: Path) -> None:
    outcome = check(net, tmp_path, "0.21.19")
    assert outcome.status is Status.MISMATCH
    assert outcome.failed_sizes == ({"T": 100_000},)
    assert outcome.error is not None
    assert outcome.error.hint.startswith("all smaller sizes pass: an error grows with T")


@pytest.mark.usefixtures("drifting")
def test_a_drift_within_the_declared_sizes(tmp_path: Path) -> None:
    """1,000 steps of 1e-7 are within the level."""
    assert check(lambda x: x.cumsum(1), tmp_path, "0.21.19", Dim("T", max=1_000)).passed


def test_the_record_says_which_size(tmp_path: Path) -> None:
    outcome = check(lambda x: x.cumsum(1), tmp_path, NEWEST)
    assert outcome.facts[LONG_SIZES] == ["T = 100000 (cumsum, positions)"]
    assert {"T": 100_000} in outcome.sizes
    assert LONG_SIZES not in check(torch.relu, tmp_path, NEWEST).facts


def test_rounding_of_pytorch_itself_is_no_mismatch(tmp_path: Path) -> None:
    """Products with a long sum are far from float64 in PyTorch's float32 as well, near 0 by more than the level."""
    torch.manual_seed(1)
    net = net_of(lambda self, x: self.linear(x) * x.sum(), linear=nn.Linear(4, 5)).eval()
    export = ModelExport(net, {"x": torch.randn(2, 7, 4)}, dynamic_axes={"x": {1: "T"}})
    outcome = export.to(TractNNEF(NEWEST, check_io=False), tmp_path / "model.nnef.tar").check_parity()
    assert outcome.passed, outcome.describe()
    (line,) = outcome.facts[LONG_SIZES]
    assert "(sum): the difference is rounding: the engine is" in line
    assert {"T": 12_500} not in outcome.sizes
