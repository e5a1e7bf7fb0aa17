"""Axes of one element, in front of which some engines count wrongly when they compute in place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ExportResult, ModelExport, TractNNEF
from tests.nets import net_of

READING_WRONGLY = ("0.21.8", "0.21.13", "0.21.19", "0.22.4")
RIGHT = ("0.21.7", "0.23.0")
WIDTH = 36
"""From 32 elements on, whatever the batch, the engine takes many at once."""
AXES = {"x": {0: "B"}}


def function_net(function: Callable[[Tensor, nn.Module], Tensor]) -> nn.Module:
    return net_of(lambda self, x: function(x, self.line), line=nn.Linear(WIDTH, WIDTH, bias=False))


def export(
    version: str, path: Path, function: Callable[[Tensor, nn.Module], Tensor], **options: object
) -> ExportResult:
    torch.manual_seed(3)
    model, x = function_net(function).eval(), torch.randn(2, 4, WIDTH)
    axes = options.get("axes", AXES)
    return ModelExport(model, (x,), dynamic_axes=axes).to(TractNNEF(version), path / "model.nnef.tar")  # type: ignore[arg-type]


def operators(result: ExportResult) -> list[str]:
    return [operation.name for operation in result.graph.operations]


def gated(x: Tensor, line: nn.Module) -> Tensor:
    return x[None] * x.sin()[None]


@pytest.mark.parametrize("version", [*RIGHT, *READING_WRONGLY])
def test_what_is_computed_in_place_is_right(version: str, tmp_path: Path) -> None:
    export(version, tmp_path, gated).assert_parity("close")


@pytest.mark.parametrize("version", [*RIGHT, "0.21.10", *READING_WRONGLY])
def test_a_sum_over_a_dynamic_axis_leaves_one(version: str, tmp_path: Path) -> None:
    outcome = export(
        version, tmp_path, lambda x, line: x.sum(0, keepdim=True).tanh() + x.amax(0, keepdim=True)
    ).check_parity("approximate")
    assert outcome.passed, outcome.describe()


def test_one_known_index_is_a_slice_to_the_engine(tmp_path: Path) -> None:
    result = export("0.22.4", tmp_path, lambda x, line: x[None, :1, :, None] * x.sin()[None, :1, :, None])
    result.assert_parity("close")


class Moved(nn.Module):
    """A net in which the engine moves an axis of one element across an elementwise operator."""

    def __init__(self, function: Callable[[Moved, Tensor], Tensor]) -> None:
        super().__init__()
        self.function, self.line, self.points = function, nn.Linear(8, 5), nn.Conv2d(64, 64, 1)
        self.column, self.planes = nn.Parameter(torch.randn(1, 64, 1, 1)), nn.Parameter(torch.randn(64, 8, 8))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


MOVED: dict[str, Callable[[Moved, Tensor], Tensor]] = {
    "a sum in front of a product": lambda m, x: m.line(x.sum(1) * m.planes),
    "an exponential of a sum": lambda m, x: m.line((x.mean(1) * 0.1).exp() - m.planes),
    "a sum of planes in front of a convolution": lambda m, x: m.points(x.sum(1).sum((2, 3), keepdim=True) * m.column),
    "a flattened sum": lambda m, x: m.points(x.sum(1, True).flatten(1, 2).mean((2, 3), True) / m.column),
    "a turned sum of a convolution": lambda m, x: (m.points(x[:, 0]).sum((2, 3), True) + m.column).permute(0, 2, 3, 1),
}


@pytest.mark.parametrize("version", READING_WRONGLY)
@pytest.mark.parametrize("name", MOVED)
def test_axes_that_the_engine_moves(name: str, version: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    x = torch.randn(3, 2, 64, 8, 8)
    export = ModelExport(Moved(MOVED[name]).eval(), (x,)).to(TractNNEF(version), tmp_path / "model.nnef.tar")
    export.assert_parity("approximate")


@pytest.mark.parametrize("version", [*RIGHT, *READING_WRONGLY])
def test_new_memory_only_where_it_is_needed(version: str, tmp_path: Path) -> None:
    assert operators(export(version, tmp_path, gated)).count("tract_core_cast") == 2 * (version in READING_WRONGLY)


def test_another_operand_in_front_costs_nothing(tmp_path: Path) -> None:
    result = export("0.22.4", tmp_path, lambda x, line: x[None] + line(x)[None].where(x[None] > 0, 0.5))
    assert "tract_core_cast" not in operators(result)
    (addition,) = [o for o in result.graph.operations if o.name == "add"]
    front = next(addition.inputs()).producer
    assert front is not None
    assert front.name == "select"
    result.assert_parity("approximate")


@pytest.mark.parametrize(
    "function",
    [
        lambda x, line: x[None] * 0.5 + x[None].mean(-1, keepdim=True),
        lambda x, line: x.flatten(0, 1) * x.flatten(0, 1).sin(),
        lambda x, line: x.reshape(*x.shape[:2], 3, 12) * x.reshape(*x.shape[:2], 3, 12).sin(),
        lambda x, line: line(x) * line(x).sin(),
        lambda x, line: x[None] * x[None],
        lambda x, line: nn.functional.max_pool2d(x[:, None], 2) + nn.functional.avg_pool2d(x[:, None], 2),
    ],
    ids=["few elements", "merged axes", "split known axis", "nothing inserted", "squares", "pooled"],
)
def test_the_rest_is_written_as_ever(function: Callable[[Tensor, nn.Module], Tensor], tmp_path: Path) -> None:
    result = export("0.22.4", tmp_path, function)
    assert "tract_core_cast" not in operators(result)
    result.assert_parity("approximate")


def test_known_sizes_are_right_without(tmp_path: Path) -> None:
    result = export("0.22.4", tmp_path, gated, axes=None)
    assert "tract_core_cast" not in operators(result)
    result.assert_parity("close")
