"""The lowering of a capture for a target."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from t2n_core import KhronosNNEF, ModelExport, TractNNEF
from t2n_core.errors import InputError
from t2n_core.export import exportable_model
from t2n_core.nnef.writer import graph_text
from t2n_core.rewriter.captures import Captures
from tests.releases import NEWEST

TARGET = TractNNEF(NEWEST)
X = torch.linspace(-2, 3, 12).reshape(3, 4)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))


def test_targets_share_the_capture() -> None:
    export = ModelExport(Net().eval(), X)
    assert export.lowering_for(TARGET).capture is export.lowering_for(KhronosNNEF()).capture


def test_the_lowering_of_a_result_writes_its_graph_again(tmp_path: Path) -> None:
    result = ModelExport(Net().eval(), X).to(TARGET, tmp_path / "net.nnef.tar")
    again = result.lowering.write(result.lowering.simplified(), result.output_names)
    assert "tanh" in graph_text(again, spec=TARGET.spec)
    assert graph_text(again, spec=TARGET.spec) == graph_text(result.graph, spec=TARGET.spec)


def test_an_export_looks_up_its_rewriters_and_capture_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for owner, name in ((exportable_model, "select"), (Captures, "find")):
        plain = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *arguments, n=name, plain=plain: (calls.append(n), plain(*arguments))[1]
        )
    export = ModelExport(Net().eval(), X)
    for target in (TARGET, KhronosNNEF()):
        calls.clear()
        export.to(target, tmp_path / f"{target.name}.nnef.tar")
        assert calls == ["select", "find"]


def test_the_example_has_to_be_in_the_range_of_the_target() -> None:
    target = TractNNEF(NEWEST, dynamic_axes={"x": {0: "T"}}, custom_extensions=["tract_assert T >= 4"])
    export = ModelExport(Net().eval(), X, dynamic_axes=target.dynamic_axes)
    lowering = export.lowering_for(target)
    with pytest.raises(InputError, match=r"the example's sizes T=3 are outside of the range T >= 4"):
        lowering.write(lowering.simplified(), ["y"])
