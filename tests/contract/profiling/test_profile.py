"""The profile of real archives in releases of each kind of interface: names, shares, agreement with plain runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import EngineRunError
from t2n_core.nnef.reading.origins import origins_of
from t2n_core.profiling.profile import profile_archive
from tests.releases import NEWEST


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(16, 32, batch_first=True)
        self.out = nn.Linear(32, 64)

    def forward(self, x: Tensor) -> Tensor:
        hidden, _ = self.rnn(x)
        return torch.tanh(self.out(hidden)) + 1.0


@pytest.mark.parametrize("version", ["0.19.15", "0.22.4", NEWEST])
def test_time_goes_to_modules_and_lines(version: str, tract_engine: Any, tmp_path: Path) -> None:
    torch.manual_seed(3)
    result = ModelExport(Net().eval(), torch.randn(2, 400, 16)).to(TractNNEF(version), tmp_path / "m.tgz")
    inputs = result.samples[0].inputs
    profile = profile_archive(
        tract_engine(version), result.archive, inputs, origins=origins_of(result.graph), seconds=0.2
    )
    assert sum(line.share for line in profile.lines) == pytest.approx(1.0)
    assert sum(line.seconds for line in profile.lines) == pytest.approx(profile.median)
    owned = sum(line.share for line in profile.lines if line.origin)
    assert owned > 0.95, profile.describe()
    slowest = profile.lines[0]
    assert "module `rnn`" in slowest.origin
    assert slowest.inside > 3 or version == NEWEST  # which has an operator of its own for the whole sequence
    assert any("module `out`" in line.origin for line in profile.lines)
    assert 0.5 < profile.agreement < 2.0, profile.describe()


def test_an_archive_that_does_not_run_has_no_profile(build: Any, tract_engine: Any, tmp_path: Path) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    text = "version 1.0;\ngraph g(x) -> (y)\n{\n  x = external(shape = [2]);\n  y = f(x);\n}\n"
    (folder / "graph.nnef").write_text(text)
    with pytest.raises(EngineRunError, match=r"tract 0\.23\.9 does not run it: error at load"):
        profile_archive(tract_engine(NEWEST), folder, [torch.ones(2).numpy()])
