"""Regions of autocast and of gradient modes are parts of the model like all others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import UnsupportedOpsError
from tests.releases import NEWEST

VERSIONS = ("0.19.15", NEWEST)


class Net(nn.Module):
    def __init__(self, function: Callable[..., tuple[Tensor, ...]]) -> None:
        super().__init__()
        self.function = function
        self.linear = nn.Linear(4, 4)
        self.gru = nn.GRU(4, 5, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.function(self, x)


def without_autocast(net: Net, x: Tensor) -> tuple[Tensor, ...]:
    with torch.autocast("cpu", enabled=False):
        scores = (x.float() @ x.float().mT).softmax(-1)
    return (scores, net.linear(x))


def of_another_device(net: Net, x: Tensor) -> tuple[Tensor, ...]:
    with torch.autocast("cuda", dtype=torch.float16):
        return (net.linear(x) @ x.mT,)


def with_gradients(net: Net, x: Tensor) -> tuple[Tensor, ...]:
    with torch.enable_grad():
        y = x * 2
        with torch.no_grad():
            z = y.cumsum(1) + x.shape[1]
    return y, z


def with_gradients_of_weights(net: Net, x: Tensor) -> tuple[Tensor, ...]:
    with torch.enable_grad():
        y = net.linear(x)
        with torch.no_grad():
            z = net.linear(y)
            with torch.enable_grad():
                z = net.linear(z.relu())
    return y, z


def with_a_write(net: Net, x: Tensor) -> tuple[Tensor, ...]:
    with torch.autocast("cpu", enabled=False):
        y = net.linear(x) + torch.tensor([1.0, 2.0, 3.0, 4.0])
        with torch.no_grad():
            y[:, :, 0] = 3
    return (y.sin(),)


def with_a_recurrent_net(net: Net, x: Tensor) -> tuple[Tensor, ...]:
    with torch.autocast("cpu", enabled=False):
        return (net.gru(x)[0],)


def in_float16(net: Net, x: Tensor) -> tuple[Tensor, ...]:
    with torch.autocast("cpu", dtype=torch.float16):
        return ((x @ x.mT).relu() + 1,)


def in_bfloat16(net: Net, x: Tensor) -> tuple[Tensor, ...]:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (x @ x.mT,)


RIGHT = (
    without_autocast,
    of_another_device,
    with_gradients,
    with_gradients_of_weights,
    with_a_write,
    with_a_recurrent_net,
    in_float16,
)


def export_of(function: Callable[..., tuple[Tensor, ...]]) -> ModelExport:
    torch.manual_seed(3)
    return ModelExport(Net(function).eval(), torch.randn(2, 7, 4), dynamic_axes={"x": {1: "T"}})


@pytest.mark.filterwarnings("ignore:User provided device_type of 'cuda'")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("function", RIGHT)
def test_regions(function: Callable[..., tuple[Tensor, ...]], version: str, tmp_path: Path) -> None:
    result = export_of(function).to(TractNNEF(version), tmp_path / "model.nnef.tar")
    assert str(result.range) == "T >= 1"
    result.assert_parity("very" if function is in_float16 else "approximate")


def test_regions_of_a_program(tmp_path: Path) -> None:
    torch.manual_seed(3)
    program = torch.export.export(Net(with_a_write).eval(), (torch.randn(2, 7, 4),), strict=False)
    before = str(program.graph)
    ModelExport(program).to(TractNNEF(NEWEST), tmp_path / "model.nnef.tar").assert_parity("approximate")
    assert str(program.graph) == before


def graphs_of(program: torch.export.ExportedProgram) -> list[str]:
    return [str(part.graph) for part in program.graph_module.modules() if isinstance(part, torch.fx.GraphModule)]


def test_a_program_keeps_its_regions_of_gradients() -> None:
    torch.manual_seed(3)
    program = torch.export.export(Net(with_gradients_of_weights).eval(), (torch.randn(2, 7, 4),), strict=False)
    before = [
        str(module.graph) for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule)
    ]
    ModelExport(program).lower(TractNNEF(NEWEST))
    assert graphs_of(program) == before
    assert len(before) > 1


def test_an_autocast_to_what_nnef_does_not_have() -> None:
    with pytest.raises(UnsupportedOpsError, match="bfloat16 cannot be expressed in NNEF"):
        export_of(in_bfloat16).lower(TractNNEF(NEWEST))
