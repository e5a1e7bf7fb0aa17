"""Axes that `dynamic_axes` names: of outputs, and of inputs whose sizes are related as declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from t2n_core import ModelExport, TractNNEF
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.errors import InputError
from tests.nets import net_of
from tests.releases import NEWEST


class Frames(nn.Module):
    """Returns the input times two, the input twice along time, and its sum over time."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return x * 2, torch.cat([x, x], 1), x.sum(1)


def export(outputs: dict[str, Any], **options: Any) -> ModelExport:
    axes = {"x": {1: "T"}, **outputs}
    names = {"output_names": ["same", "twice", "sum"], **options}
    return ModelExport(Frames(), {"x": torch.randn(2, 6, 3)}, dynamic_axes=axes, **names)


@pytest.mark.parametrize(
    "outputs",
    [
        {"same": {1: "T"}},
        {"same": {-2: "T"}, "twice": {1: 2 * Dim("T")}},
        {"same": [1], "twice": [1]},
        {"twice": {1: "U", 0: None}},
        {"sum": {0: None}},
    ],
)
def test_what_is_found_may_be_declared(outputs: dict[str, Any], tmp_path: Path) -> None:
    result = export(outputs).to(TractNNEF(NEWEST), tmp_path / "m.tar")
    assert result.assert_parity().passed
    assert str(result.range) == "T >= 1"


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"same": {1: "T"}, "sum": {1: "T"}}, "axis 1 of the output `sum` is 3, and is declared as T"),
        ({"twice": {1: "T"}}, r"axis 1 of the output `twice` is 2\*T, and is declared as T"),
        ({"sum": [0]}, "axis 0 of the output `sum` is 2, and is declared as dynamic"),
        ({"same": {1: None}}, "axis 1 of the output `same` is T, and is declared as static"),
        ({"same": {3: "T"}}, "the output `same` has rank 3, there is no axis 3"),
        ({"sum": {"0": "T"}}, "`sum` has no axis '0'"),
        ({"summ": {0: "T"}}, "dynamic_axes names `summ`; the inputs are x, the outputs same, twice, sum"),
    ],
)
def test_what_is_not_found_is_refused(outputs: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _ = export(outputs).captured


def test_a_target_may_declare_them(tmp_path: Path) -> None:
    target = TractNNEF(NEWEST, dynamic_axes={"x": {1: "T"}, "output_0": {1: "T"}})
    export = ModelExport(Frames(), {"x": torch.randn(2, 6, 3)})
    assert export.to(target, tmp_path / "m.tar").output_names == ["output_0", "output_1", "output_2"]


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
