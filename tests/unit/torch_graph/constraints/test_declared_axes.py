"""What a user declares of dynamic axes: names, Dims with bounds, multiples of Dims."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from t2n_core import ModelExport
from t2n_core.errors import CaptureError, InputError, RangeWarning
from t2n_core.nnef.sizes.ranges import Bounds, SizeRange
from t2n_core.torch_graph.constraints.declared_axes import AxisSize, DynamicAxes, SizeFrom, normalise
from tests.nets import net_of

SHAPES = {"x": (2, 8, 4), "y": (2, 17)}
T = Dim("T", min=2, max=16)


@pytest.mark.parametrize(
    ("expected", "size", "bounds"),
    [
        ("T", AxisSize("T"), (1, None)),
        (Dim("T"), AxisSize("T"), (1, None)),
        (Dim("T", min=2), AxisSize("T"), (2, None)),
        (T, AxisSize("T"), (2, 16)),
        (Dim("T", min=0, max=16), AxisSize("T"), (0, 16)),
        (2 * T, AxisSize("T", 2), (2, 16)),
        (2 * (2 * T), AxisSize("T", 4), (2, 16)),
        (T - 2, AxisSize("T", 1, -2), (2, 16)),
        (Dim("T") - 2, AxisSize("T", 1, -2), (2, None)),
        (Dim.DYNAMIC, AxisSize("x_dim1"), (1, None)),
        (Dim.AUTO(min=0), AxisSize("x_dim1"), (0, None)),
        (Dim.DYNAMIC(max=9), AxisSize("x_dim1"), (1, 9)),
        (SizeFrom("P"), AxisSize("P"), (0, None)),
        (SizeFrom("P", 3), AxisSize("P"), (3, None)),
    ],
)
def test_a_size_and_its_bounds(expected: Any, size: AxisSize, bounds: Bounds) -> None:
    declared = normalise({"x": {-2: expected}}, SHAPES)
    assert declared.axes == {"x": {1: size}}
    assert declared.range == SizeRange({size.name: bounds})


def test_names_lists_and_static_axes() -> None:
    declared = normalise({"x": [0, -1], "y": {0: None, 1: Dim.STATIC}}, SHAPES)
    assert declared.axes == {"x": {0: AxisSize("x_dim0"), 2: AxisSize("x_dim2")}}
    assert declared.range == SizeRange.of(["x_dim0", "x_dim2"])


def test_a_name_takes_the_bounds_of_the_dim() -> None:
    declared = normalise({"x": {1: "T"}, "y": {1: 2 * Dim("T", max=16) + 1}}, SHAPES)
    assert declared.axes == {"x": {1: AxisSize("T")}, "y": {1: AxisSize("T", 2, 1)}}
    assert declared.range == SizeRange({"T": (0, 16)})


def test_an_empty_example_allows_empty_axes() -> None:
    assert normalise({"x": {1: "P"}}, {"x": (2, 0)}).range == SizeRange({"P": (0, None)})


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"x": {1: T, 2: Dim("T", max=9)}}, "T has different bounds in"),
        ({"x": {1: Dim("T", max=7)}}, "the example has T = 8 in axis 1 of `x`, outside of its range 0 <= T <= 7"),
        ({"x": {1: Dim("T", min=9)}}, "T = 8 in axis 1 of `x`, outside of its range T >= 9"),
        ({"y": {1: 2 * T}}, r"the example has size 17 in axis 1 of `y`, which is declared as 2\*T"),
        ({"x": {1: "T"}, "y": {1: "T"}}, "T = 8 in axis 1 of `x` and T = 17 in axis 1 of `y`"),
        ({"x": {1: T}, "y": {1: 4 * T + 1}}, "T = 8 in axis 1 of `x` and T = 4 in axis 1 of `y`"),
        ({"x": {1: "T", -2: "S"}}, "axis 1 of `x` is given twice"),
        ({"x": {1: 8}}, "8 is not a size"),
        ({"x": {1: SizeFrom("P", -1)}}, "no axis has a size of -1, the least of P"),
        ({"x": {1: SizeFrom("P", 9)}}, "P = 8 in axis 1 of `x`, outside of its range P >= 9"),
        ({"x": {1: SizeFrom("P"), 2: Dim("P", min=2)}}, "P has different bounds in"),
        ({"x": {1: SizeFrom("past size")}}, "is not a symbol"),
        ({"x": {3: "T"}}, "there is no axis 3"),
    ],
)
def test_contradictions(declared: DynamicAxes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        normalise(declared, SHAPES)


def test_inputs_share_a_size_from_0_on() -> None:
    shapes = {"k": (2, 5), "v": (5, 2), "mask": (5,)}
    declared = normalise({"k": {1: SizeFrom("P")}, "v": {0: SizeFrom("P")}, "mask": {0: "P"}}, shapes)
    assert declared.range == SizeRange({"P": (0, None)})
    assert declared.kept_least == {"P"}


@pytest.mark.parametrize("axis", [SizeFrom("P"), Dim("P", min=0, max=64)])
def test_a_size_from_0_on_is_kept_or_refused(axis: Any) -> None:
    net = net_of(lambda _, x: x * 2 if x.shape[0] >= 1 else torch.zeros(3, 4))
    export = ModelExport(net, (torch.randn(6, 4),), dynamic_axes={"x": {0: axis}})
    if isinstance(axis, SizeFrom):
        with pytest.raises(CaptureError, match="P is declared from 0 to any size; the captured graph holds only for"):
            _ = export.captured
    else:
        with pytest.warns(RangeWarning, match="P"):
            assert export.captured.range == SizeRange({"P": (1, 64)})


def test_a_largest_size_that_nobody_declared_is_found() -> None:
    model = net_of(lambda _, x: x * 2 if x.shape[0] <= 20 else x)
    export = ModelExport(model, (torch.randn(6, 4),), dynamic_axes={"x": {0: SizeFrom("P", 1)}})
    with pytest.warns(RangeWarning, match="P"):
        assert export.captured.range == SizeRange({"P": (1, 20)})


@pytest.mark.parametrize(
    "model",
    [
        net_of(lambda _, x, y: y.reshape(y.shape[0], -1, 2, 4).sum(2) + x),
        net_of(lambda _, x, y: (x * 2, y.reshape(y.shape[0], y.shape[1] // 2, 8).relu())),
    ],
)
@pytest.mark.parametrize("order", [["x", "y"], ["y", "x"]])
def test_a_multiple_of_a_size(model: nn.Module, order: list[str]) -> None:
    inputs = {"x": torch.randn(2, 3, 4), "y": torch.randn(2, 6, 4)}
    size = Dim("T", min=2, max=16)
    export = ModelExport(model, inputs, dynamic_axes={n: {1: {"x": size, "y": 2 * size}[n]} for n in order})
    captured = export.captured
    assert captured.symbols == {"T": 3}
    assert [str(v.shape[1]) for v in captured.graph.inputs] == ["T", "2*T"]
    assert captured.range == SizeRange({"T": (2, 16)})
    assert captured.graph.outputs[-1].shape[1] == captured.graph.inputs[0].shape[1]


def test_a_size_that_is_fixed_is_told() -> None:
    fixed = net_of(lambda _, x: x + torch.ones(6, 4))
    export = ModelExport(fixed, (torch.randn(2, 6, 4),), dynamic_axes={"x": {1: 2 * T}})
    with pytest.raises(CaptureError, match="6"):
        _ = export.captured
