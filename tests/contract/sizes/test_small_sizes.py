"""Archives that hold from the size 0 or 1 on, or are padded up to a least size, are right there."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import LowerError, RangeWarning
from t2n_core.torch_graph.constraints.declared_axes import SizeFrom
from tests.nets import OfFunction, net_of
from tests.releases import NEWEST, OLDEST, on_each_line

VERSIONS = on_each_line(OLDEST, "0.21.19", NEWEST)
NETS: dict[str, Callable[[Tensor], Tensor]] = {
    "merged": lambda x: x.reshape(-1, 4) * 2,
    "merged with the axis in front": lambda x: x.transpose(0, 1).reshape(-1, 4) * 2,
    "merged with the next axis": lambda x: x.transpose(0, 1).flatten(1) * 2,
    "all": lambda x: x.reshape(-1) * 2,
    "with one": lambda x: x[:, :1].reshape(-1, 4) * 2,
    "in another order": lambda x: x.reshape(5, -1, 4) * 2,
    "beside": lambda x: x.reshape(x.shape[0], 20) * 2,
    "joined": lambda x: torch.cat([x, x * 2], 1),
}
WITHOUT_EMPTY = ("merged", "merged with the axis in front", "merged with the next axis")
"""tract 0.21.6 to 0.22 take the reshape for the removal of an axis of 5."""


def exported(name: str, axis: Dim | SizeFrom) -> ModelExport:
    torch.manual_seed(0)
    module = OfFunction(NETS[name]).eval()
    return ModelExport(module, torch.randn(3, 5, 4), input_names=["x"], dynamic_axes={"x": {0: axis}})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NETS)
def test_the_range_that_is_stated_is_right(name: str, version: str, tmp_path: Path) -> None:
    export = exported(name, Dim("B", min=0, max=99))
    without_empty = name in WITHOUT_EMPTY and version in ("0.21.19", "0.22.4")
    prefix = f"the archive holds only for 1 <= B <= 99: tract {version} fails to reshape an empty tensor in aten::"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", RangeWarning)
        result = export.to(TractNNEF(version, check_io=False), tmp_path / "model.nnef.tar")
    assert [note.startswith(prefix) for note in result.notes] == [True] * without_empty
    assert [str(warning.message) for warning in seen if warning.category is RangeWarning] == list(result.notes)
    assert min(size["B"] for size in result.assert_parity().sizes) == int(without_empty)


def test_a_declared_size_is_never_left_out(tmp_path: Path) -> None:
    export = exported("merged", SizeFrom("B"))
    with pytest.raises(
        LowerError, match=r"B is declared from 0 on; the archive holds only for B >= 1: .* reshape"
    ) as no:
        export.to(TractNNEF("0.21.19", check_io=False), tmp_path / "model.nnef.tar")
    assert not list(tmp_path.iterdir())
    assert 'Dim("B", min=1, max=…)' in str(no.value)
    export.to(TractNNEF(NEWEST), tmp_path / "model.nnef.tar").assert_parity()


def overwritten(x: Tensor) -> Tensor:
    y = x.clone()
    y[:, 2:] = 0
    y[:, :-1] = y[:, 1:] * 2
    return y


def sliced_beside_a_pad(x: Tensor) -> tuple[Tensor, Tensor]:
    return F.pad(x.mT, (1, 1), mode="circular").mT * 2, x[:, 1:].relu()[:, 1:]


SHORT: dict[str, Callable[[Tensor], Any]] = {
    "overwritten": overwritten,
    "sliced_beside_a_pad": sliced_beside_a_pad,
    "sliced_twice": lambda x: x[:, 1:].relu()[:, 1:],
    "transform_of_5": lambda x: torch.fft.rfft(x, n=5, dim=1).abs(),
}


def short_net(name: str) -> nn.Module:
    return net_of(lambda self, x: self.function(x), function=SHORT[name])


@pytest.mark.parametrize("version", ["0.19.15", "0.21.19", NEWEST])
@pytest.mark.parametrize("name", SHORT)
def test_sizes_from_one_on_are_right(name: str, version: str, tmp_path: Path) -> None:
    torch.manual_seed(len(name))
    others = [torch.randn(2, size, 4) for size in (1, 2, 3, 5, 9)]
    export = ModelExport(short_net(name), torch.randn(2, 8, 4), dynamic_axes={"x": {1: "T"}}, extra_inputs=others)
    result = export.to(TractNNEF(version, check_io=False), tmp_path / "model.nnef.tar")
    assert str(result.range) == "T >= 1"
    result.assert_parity()


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
@pytest.mark.parametrize(
    "model",
    [
        net_of(lambda _, x: F.pad(x, (0, torch.sym_max(5 - x.shape[1], 0))) * 2.0),
        net_of(lambda _, x: torch.cat([x, x.new_zeros(x.shape[0], torch.sym_max(5 - x.shape[1], 0))], 1) * 2.0),
        net_of(lambda _, x: x[:, :5].sum(1)),
    ],
    ids=["padded", "joined", "cropped"],
)
def test_both_sides_of_a_least_size_are_right(model: nn.Module, version: str, tmp_path: Path) -> None:
    export = ModelExport(model, {"x": torch.randn(2, 7)}, dynamic_axes={"x": {1: "T"}})
    outcome = export.to(TractNNEF(version), tmp_path / "m.tar").assert_parity("approximate")
    sizes = {size["T"] for size in outcome.sizes}
    assert outcome.range == "T >= 1"
    assert min(sizes) < 5 < max(sizes)
