"""Engines refuse inputs whose sizes are not related as declared, whatever the order of the inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from t2n_core import ModelExport, TractNNEF
from t2n_core.engine.tract.engine import TractEngine
from tests.nets import net_of
from tests.releases import NEWEST

VERSIONS = ("0.19.15", "0.20.22", "0.21.19", "0.22.4", "0.23.0", NEWEST)
T = Dim("T")


AXES = {
    "multiple first": ((2, 6, 4), (2, 3, 4), {"x": {1: 2 * T}, "y": {1: T}}, [((2, 3, 4), (2, 1, 4))]),
    "multiple last": ((2, 3, 4), (2, 6, 4), {"x": {1: T}, "y": {1: 2 * T}}, [((2, 1, 4), (2, 3, 4))]),
    "two multiples": ((2, 9, 4), (2, 6, 4), {"x": {1: 3 * T}, "y": {1: 2 * T}}, [((2, 4, 4), (2, 2, 4))]),
    "in one input": ((2, 6, 3), (2, 5, 4), {"x": {1: 2 * T, 2: T}}, [((2, 3, 1), (2, 5, 4)), ((2, 7, 3), (2, 5, 4))]),
    "alone": ((2, 6, 3), (2, 5, 4), {"x": {1: 2 * T}}, [((2, 3, 3), (2, 5, 4)), ((2, 7, 3), (2, 5, 4))]),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", list(AXES))
def test_unrelated_sizes_are_refused(name: str, version: str, tmp_path: Path) -> None:
    x, y, axes, wrong = AXES[name]
    generator = torch.Generator().manual_seed(0)
    example = (torch.randn(x, generator=generator), torch.randn(y, generator=generator))
    net = net_of(lambda _, x, y: x.sum((1, 2)) / x.shape[1] - y.sum((1, 2)) / x.shape[2])
    result = ModelExport(net, example, dynamic_axes=axes).to(TractNNEF(version), tmp_path / "model.nnef.tar")
    result.assert_parity("approximate")
    engine = result.target.engine()
    assert isinstance(engine, TractEngine)
    batches = [[torch.ones(shape).numpy() for shape in shapes] for shapes in wrong]
    reply = engine.run(result.archive, [*batches, [t.numpy() for t in example]], keep_going=True)
    assert reply.status == "ok", reply.message
    assert list(reply.refused) == list(range(len(wrong)))


class HalfTheRows(nn.Module):
    """Two branches: the archive holds only where half of the rows, rounded up, are as many as the columns."""

    def forward(self, x: Tensor) -> Tensor:
        first = x.tensor_split(2, 0)[0]
        return first.mean(0) if first.shape[0] - x.shape[1] == 0 else first.relu()


@pytest.mark.filterwarnings("ignore:the archive holds only")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_quotient_beside_a_size_is_not_rounded_to_zero(version: str, tmp_path: Path) -> None:
    result = ModelExport(HalfTheRows(), torch.randn(5, 3), dynamic_axes={"x": {0: "B", 1: "T"}}).to(
        TractNNEF(version), tmp_path / "model.nnef.tar"
    )
    engine = result.target.engine()
    assert isinstance(engine, TractEngine)
    right, wrong = [(5, 3), (6, 3), (1, 1), (2, 1)], [(4, 3), (2, 2), (1, 2), (7, 3), (3, 1)]
    batches = [[torch.ones(shape).numpy()] for shape in (*right, *wrong)]
    reply = engine.run(result.archive, batches, keep_going=True)
    assert reply.status == "ok", reply.message
    assert list(reply.refused) == list(range(len(right), len(batches)))
