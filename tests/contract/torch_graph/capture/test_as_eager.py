"""What torch.export would capture differently is as in eager PyTorch, or refused: `tensor.data` and torch.vmap too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import CaptureError, RangeWarning
from tests.nets import net_of
from tests.releases import NEWEST

PADDED = torch.tensor([[False, False, False], [False, False, True]])


class Encoder(nn.Module):
    def __init__(self, nested: bool) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=nested)

    def forward(self, x: torch.Tensor, padded: torch.Tensor) -> torch.Tensor:
        return self.encoder(x, src_key_padding_mask=padded)


def test_a_padding_mask_of_nested_tensors_is_refused():
    export = ModelExport(Encoder(nested=True).eval(), (torch.randn(2, 3, 4), PADDED))
    with pytest.raises(CaptureError, match="zeros at padded positions") as caught:
        _ = export.captured
    assert "enable_nested_tensor=False" in str(caught.value)


def test_a_padding_mask_without_nested_tensors_passes(tmp_path):
    torch.manual_seed(5)
    export = ModelExport(Encoder(nested=False).eval(), (torch.randn(2, 3, 4), PADDED))
    export.to(TractNNEF(NEWEST), tmp_path / "a.tar").assert_parity()


def loss(reduction: str) -> nn.Module:
    return net_of(lambda _, x, target: functional.multilabel_margin_loss(x, target, reduction=reduction))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("targets", [[3, 0, -1, 1, 1], [[3, 0, -1, 1, 1], [0, 1, 2, 3, 4], [-1, 2, 3, 4, 0]]])
def test_the_margins_of_many_labels(targets, reduction, tmp_path):
    torch.manual_seed(7)
    target = torch.tensor(targets)
    export = ModelExport(loss(reduction).eval(), (torch.randn(target.shape), target))
    export.to(TractNNEF(NEWEST), tmp_path / "a.tar").assert_parity("approximate")


KEYWORDS = {
    "tensor_split by indices": lambda x: torch.tensor_split(x, indices=(1,), dim=1),
    "tensor_split by sections": lambda x: torch.tensor_split(x, sections=2, dim=1),
    "tensor_split along an axis": lambda x: x.tensor_split(2, axis=1),
    "squeeze of an axis": lambda x: x[:, :, :1].squeeze(axis=2),
    "select of an axis": lambda x: torch.select(x, axis=1, index=0),
    "narrow of an axis": lambda x: torch.narrow(x, axis=1, start=0, length=1),
}


def called(name: str) -> nn.Module:
    return net_of(lambda _, x: KEYWORDS[name](x))


@pytest.mark.parametrize("name", list(KEYWORDS))
def test_functions_are_captured_with_all_names_of_their_arguments(name):
    x = torch.randn(2, 6, 4)
    graph = ModelExport(called(name).eval(), {"x": x}, dynamic_axes={"x": {0: "B"}}).captured.graph
    expected = KEYWORDS[name](x)
    shapes = [tuple(t.shape[1:]) for t in ([expected] if isinstance(expected, torch.Tensor) else expected)]
    assert [output.shape[1:] for output in graph.outputs] == shapes


class Unshuffled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        even = x[:, :, : x.shape[2] // 2 * 2, : x.shape[3] // 2 * 2]
        return functional.pixel_unshuffle(even, 2)


@pytest.mark.parametrize("sizes", [(4, 6), (9, 5)])
def test_pixels_of_a_slice_are_unshuffled_where_there_are_some(sizes):
    export = ModelExport(Unshuffled(), {"x": torch.randn(1, 3, *sizes)}, dynamic_axes={"x": {2: "H", 3: "W"}})
    assert str(export.captured.range) == "H >= 2, W >= 2"


@pytest.mark.parametrize("squeezed", [torch.squeeze, torch.squeeze_copy, torch.ops.aten.squeeze_copy.dims])
def test_that_an_axis_stays_is_a_decision(squeezed):
    net = net_of(lambda _, x: squeezed(x, (1,)) * 2)
    with pytest.warns(RangeWarning, match="T != 1"):
        captured = ModelExport(net, {"x": torch.randn(2, 5)}, dynamic_axes={"x": {1: "T"}}).captured
    assert str(captured.range) == "T >= 2"


class Reads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x.data, self.linear.weight.data, self.linear.bias) * x.data.sum()


class Writes(Reads):
    def forward(self, x: Tensor) -> Tensor:
        self.linear.weight.data.mul_(2)
        return self.linear(x)


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
def test_data_of_weights_and_inputs(version: str, tmp_path: Path) -> None:
    export = ModelExport(Reads().eval(), torch.randn(2, 7, 4), dynamic_axes={"x": {1: "T"}}, sizes=[..., {"T": 1}])
    result = export.to(TractNNEF(version), tmp_path / "model.nnef.tar")
    assert str(result.range) == "T >= 1"
    result.assert_parity("approximate")


class WritesItself(Reads):
    def forward(self, x: Tensor) -> Tensor:
        self.linear.weight.mul_(2)
        return self.linear(x)


class RescalesByOne(Reads):
    """Rescale the layers by a power of two that is 1 for the first ones, as RWKV does in its first call."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.linear.weight.div_(2**0)
        return self.linear(x)


def test_a_write_that_changes_nothing_is_none(tmp_path: Path) -> None:
    model = RescalesByOne().eval()
    ModelExport(model, torch.randn(2, 7, 4)).to(TractNNEF(NEWEST), tmp_path / "model.nnef.tar").assert_parity()


@pytest.mark.parametrize("make", [Writes, WritesItself])
def test_a_write_into_a_weight_is_refused(make: type[Reads]) -> None:
    model = make().eval()
    with pytest.raises(CaptureError, match=r"writes its parameter `linear.weight`"):
        ModelExport(model, torch.randn(2, 7, 4)).lower(TractNNEF(NEWEST))


VERSIONS = ("0.21.19", NEWEST)


class Net(nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function
        self.weights = nn.Parameter(torch.randn(3, 5, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def over_rows(net: Net, x: Tensor) -> Tensor:
    return torch.vmap(lambda row: row @ row.T)(x)


def over_the_last_axis(net: Net, x: Tensor) -> Tensor:
    return torch.vmap(lambda column: column.softmax(-1) * column.sum(), in_dims=2)(x)


def over_weights(net: Net, x: Tensor) -> Tensor:
    return torch.vmap(lambda weight: functional.linear(x, weight))(net.weights).mean(0)


def nested(net: Net, x: Tensor) -> Tensor:
    return torch.vmap(torch.vmap(lambda row: row - row.mean()))(x)


def with_a_write(net: Net, x: Tensor) -> Tensor:
    def changed(row: Tensor) -> Tensor:
        row = row * 2
        row[:, 0] = 3
        return row

    return torch.vmap(changed)(x)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("function", [over_rows, over_the_last_axis, over_weights, nested, with_a_write])
def test_vmap(function: Callable[..., Tensor], version: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    export = ModelExport(
        Net(function).eval(), torch.randn(2, 7, 4), dynamic_axes={"x": {1: "T"}}, sizes=[..., {"T": 1}]
    )
    result = export.to(TractNNEF(version), tmp_path / "model.nnef.tar")
    assert str(result.range) == "T >= 1"
    result.assert_parity("approximate")
