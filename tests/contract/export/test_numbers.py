"""Numbers among the results of a model follow the sizes of its inputs; scripts make tensors of Python's numbers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.engine.tract.engine import TractEngine
from tests.nets import net_of
from tests.releases import NEWEST

VERSIONS = pytest.mark.parametrize("version", ["0.21.19", NEWEST])
AXES = {"x": {1: "T"}}


class Sizes(nn.Module):
    def forward(self, x: Tensor) -> Any:
        length = x.shape[1]
        return {"double": x * 2, "length": length, "half": length // 2 + 1, "inverse": 1 / length, "three": 3}


class Size(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        return x * 2, x.shape[1]


def model_of(kind: str) -> Any:
    if kind == "script":
        return torch.jit.script(Size())
    if kind == "program":
        free = {"x": {1: torch.export.Dim("T")}}
        return torch.export.export(Size(), (torch.randn(2, 7, 3),), dynamic_shapes=free, strict=False)
    return Size()


def run(result: Any, *batches: Tensor) -> list[list[np.ndarray[Any, Any]]]:
    engine = result.target.engine()
    assert isinstance(engine, TractEngine)
    reply = engine.run(result.archive, [[x.numpy()] for x in batches])
    assert reply.status == "ok", reply.message
    return [list(outputs) for outputs in reply.outputs]


@VERSIONS
def test_numbers_of_sizes_follow_the_dynamic_axis(version: str, tmp_path: Path) -> None:
    example = torch.randn(2, 7, 3)
    result = ModelExport(Sizes(), (example,), dynamic_axes=AXES).to(TractNNEF(version), tmp_path / "m.tar")
    assert result.output_names == ["double", "length", "half", "inverse", "three"]
    assert str(result.range) == "T >= 1"
    sizes = [7, 1, 4, 12]
    for size, outputs in zip(sizes, run(result, *(torch.randn(2, n, 3) for n in sizes)), strict=True):
        assert [o.shape for o in outputs[1:]] == [()] * 4
        assert [o.dtype for o in outputs[1:]] == [np.int64, np.int64, np.float32, np.int64]
        assert [o.item() for o in outputs[1:]] == [size, size // 2 + 1, np.float32(1 / size).item(), 3]
    result.assert_parity("close")


@VERSIONS
@pytest.mark.parametrize("kind", ["module", "script", "program", "trace"])
def test_all_ways_in_give_the_size(kind: str, version: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"capture": "trace"} if kind == "trace" else {}
    args = None if kind == "program" else (torch.randn(2, 7, 3),)
    axes = None if kind == "program" else AXES
    export = ModelExport(model_of(kind), args, dynamic_axes=axes, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = export.to(TractNNEF(version), tmp_path / "m.tar")
    sizes = [7, 1, 5]
    assert [o[1].item() for o in run(result, *(torch.randn(2, n, 3) for n in sizes))] == sizes
    result.assert_parity("exact")


@VERSIONS
def test_a_size_may_be_the_only_result(version: str, tmp_path: Path) -> None:
    result = ModelExport(net_of(lambda _, x: x.shape[1] + 1), (torch.randn(2, 7, 3),), dynamic_axes=AXES).to(
        TractNNEF(version), tmp_path / "m.tar"
    )
    assert [o[0].item() for o in run(result, torch.randn(2, 4, 3), torch.randn(2, 1, 3))] == [5, 2]


def test_a_check_finds_a_number_that_is_another_one_at_the_next_call(tmp_path: Path) -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Tensor) -> tuple[Tensor, int]:
            self.calls += 1
            return x * 2, self.calls

    result = ModelExport(Counts(), (torch.randn(2, 3),)).to(TractNNEF(NEWEST), tmp_path / "m.tar")
    assert not result.check_parity().passed


class OfNumbers(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.tensor([1, -2, 3, 4]) + torch.tensor([[0.1], [0.7]])[:, None]


class OfDtype(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.tensor([2.5, -1.5, 3.0, 4.0], dtype=torch.int64) + torch.tensor(True)


class OfSize(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / torch.tensor([x.shape[1], 3])[0]


class Mask(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        y[x > 0.2] = 0.5
        return y


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
@pytest.mark.parametrize("model", [OfNumbers(), OfDtype(), OfSize(), Mask()], ids=lambda model: type(model).__name__)
def test_tensors_of_numbers(model: nn.Module, version: str, tmp_path: Path) -> None:
    script = torch.jit.script(model.eval())
    export = ModelExport(script, (torch.randn(2, 7, 4),), dynamic_axes={"x": {1: "T"}}, sizes=[..., {"T": 1}])
    result = export.to(TractNNEF(version), tmp_path / "model.nnef.tar")
    assert str(result.range) == "T >= 1"
    result.assert_parity("approximate")
