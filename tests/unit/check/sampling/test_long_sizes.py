"""The long size of an axis along which errors grow: the declared maximum, or 100,000, as far as work allows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from t2n_core import ModelExport, TractNNEF
from t2n_core.check.sampling.long_sizes import LONG, LongSize, long_sizes
from tests.nets import OfFunction
from tests.releases import NEWEST


def export_of(net: Callable[[Tensor], Any], *shape: int, axis: int = 1, of: Any = "T", **more: Any) -> ModelExport:
    model = net if isinstance(net, nn.Module) else OfFunction(net)
    example = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    return ModelExport(model.eval(), example, input_names=["x"], dynamic_axes={"x": {axis: of}}, **more)


def sizes_of(export: ModelExport) -> list[LongSize]:
    captured, target = export.captured, TractNNEF(NEWEST)
    return long_sizes(captured.graph, export.lower(target), captured.range, captured.symbols)


def cumsum(x: Tensor) -> Tensor:
    return x.cumsum(1)


def test_a_free_axis_of_a_running_sum() -> None:
    assert sizes_of(export_of(cumsum, 1, 20)) == [LongSize("T", LONG, LONG, ("cumsum", "positions"))]


def test_a_declared_maximum() -> None:
    (long_size,) = sizes_of(export_of(cumsum, 1, 20, of=Dim("T", max=7_000)))
    assert (long_size.size, long_size.wanted) == (7_000, 7_000)
    assert sizes_of(export_of(cumsum, 1, 20, of=Dim("T", max=500))) == []


def test_a_multiple() -> None:
    (long_size,) = sizes_of(export_of(lambda x: x.reshape(1, -1, 7).sum(1), 1, 21, of=7 * Dim("T")))
    assert long_size.size == LONG // 4  # in rows of 7


def test_work_bounds_the_size() -> None:
    (wide,) = sizes_of(export_of(cumsum, 1, 20, 512))
    assert wide.size is not None
    assert wide.size < 10_000
    (dear,) = sizes_of(export_of(lambda x: (x @ x.mT).softmax(-1), 1, 20, 64))
    assert dear.size is None
    assert dear.describe() == "no long T, for time and memory (softmax)"


def test_steps_of_loops_are_work() -> None:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(2, 2, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.rnn(x)[0].cumsum(1)

    (long_size,) = sizes_of(export_of(Encoder(), 1, 20, 2))
    assert long_size.size is not None
    assert long_size.size < 10_000


def test_tensors_that_only_the_archive_has_are_work() -> None:
    """Where an axis has no fixed size, ranks are counted in a square of it."""
    (sorted_,) = sizes_of(export_of(lambda x: x.topk(3, 1), 1, 20))
    assert sorted_.size is not None
    assert sorted_.size < 2_000


def test_a_sample_of_the_long_size(tmp_path: Path) -> None:
    def last_size_of(net: Callable[[Tensor], Any], **more: Any) -> int:
        target = TractNNEF(NEWEST, check_io=False)
        return export_of(net, 1, 20, **more).to(target, tmp_path / "net.nnef.tar").samples[-1].sizes["T"]

    assert last_size_of(cumsum) == LONG
    assert last_size_of(cumsum, sizes=[{"T": 30}]) == 30
    assert last_size_of(torch.relu) < 100


def test_a_model_that_does_not_run_at_the_long_size(tmp_path: Path) -> None:
    table = torch.randn(600)

    def add_positions(x: Tensor) -> Tensor:
        return (x + table[torch.arange(x.shape[1])]).cumsum(1)

    result = export_of(add_positions, 1, 20).to(TractNNEF(NEWEST, check_io=False), tmp_path / "net.nnef.tar")
    assert max(sample.sizes["T"] for sample in result.samples) <= 600
    assert result.long_sizes == {"T": f"not T = {LONG}, since the model does not run there (cumsum, positions)"}
