"""Quantised layers as integer arithmetic, against PyTorch's own kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.ao.nn.intrinsic as fused
import torch.ao.quantization as ao
from torch import Tensor, nn

from t2n_core.errors import CaptureError
from t2n_core.rewriter.quantised.exchange import integer_weights

ENGINES = [e for e in ("x86", "fbgemm", "onednn", "qnnpack") if e in torch.backends.quantized.supported_engines]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(torch.backends.quantized, "engine", request.param)
    return str(request.param)


def converted(layer: nn.Module, *shape: int) -> nn.Module:
    """Return a layer between real numbers, quantised for the engine in force, with grids of 7 bits."""
    torch.manual_seed(0)
    model = nn.Sequential(ao.QuantStub(), layer, ao.DeQuantStub()).eval()
    model.qconfig = ao.get_default_qconfig("qnnpack" if torch.backends.quantized.engine == "qnnpack" else "x86")
    prepared = ao.prepare(model)
    for _ in range(4):
        prepared(torch.randn(*shape))
    quantised_model: nn.Module = ao.convert(prepared)
    return quantised_model


@torch.no_grad()
def compared(model: nn.Module, *inputs: Tensor) -> tuple[Any, Any]:
    """Return what PyTorch computes, and what integer arithmetic gives."""
    expected = model(*inputs)
    with integer_weights(model) as quantised:
        assert quantised is not None
        with quantised.running():
            return expected, model(*inputs)


LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(64, 48), (300, 64)),
    "linear-relu": (lambda: fused.LinearReLU(nn.Linear(24, 48, bias=False), nn.ReLU()), (300, 24)),
    "conv1d": (lambda: nn.Conv1d(4, 8, 3, 2, 1), (3, 4, 50)),
    "conv2d": (lambda: nn.Conv2d(6, 8, (3, 2), 2, (1, 0), 2, 2), (3, 6, 20, 21)),
    "conv2d-relu": (lambda: fused.ConvReLU2d(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()), (3, 3, 20, 20)),
    "conv2d-reflect": (lambda: nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect"), (3, 3, 9, 11)),
    "conv3d": (lambda: nn.Conv3d(2, 4, (2, 3, 1), padding=(1, 0, 0)), (2, 2, 6, 7, 5)),
}


@pytest.mark.parametrize("name", list(LAYERS))
def test_a_layer_is_what_its_engine_computes(name: str, engine: str) -> None:
    make, shape = LAYERS[name]
    if (name, engine) == ("conv3d", "qnnpack"):
        with pytest.raises(CaptureError, match="PyTorch does not give the weights"):
            compared(converted(make(), *shape), torch.randn(*shape))
        return
    expected, actual = compared(converted(make(), *shape), torch.randn(*shape))
    assert expected.unique().numel() > 20
    assert torch.equal(actual, expected)


def test_a_transposed_convolution_adds_its_output_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.quantized, "engine", "qnnpack")
    expected, actual = compared(converted(nn.ConvTranspose2d(4, 6, 3, 2, 1, 1), 2, 4, 7, 7), torch.randn(2, 4, 7, 7))
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("zeros", [[-3, -3, -3], [0, 5, -7]])
def test_weights_with_zero_points(zeros: list[int]) -> None:
    layer = torch.ao.nn.quantized.Linear(5, 3)
    scales, real = torch.tensor([0.1, 0.02, 0.3]), torch.randn(3, 5)
    weight = torch.quantize_per_channel(real, scales.double(), torch.tensor(zeros), 0, torch.qint8)
    layer.set_weight_bias(weight, torch.randn(3))
    layer.scale, layer.zero_point = 0.05, 100
    model = nn.Sequential(torch.ao.nn.quantized.Quantize(0.03, 120, torch.quint8), layer)
    expected, actual = compared(model, torch.randn(40, 5))
    assert torch.equal(actual.integers, expected.int_repr().float())


DYNAMIC: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(16, 12), (7, 16)),
    "lstm": (lambda: nn.LSTM(6, 8, 2, bidirectional=True, batch_first=True), (3, 5, 6)),
    "gru": (lambda: nn.GRU(6, 8, 2, bidirectional=True), (5, 3, 6)),
    "lstm_cell": (lambda: nn.LSTMCell(6, 8), (3, 6)),
    "gru_cell": (lambda: nn.GRUCell(6, 8), (3, 6)),
    "rnn_cell": (lambda: nn.RNNCell(6, 8, nonlinearity="relu"), (3, 6)),
}
KINDS = {nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell}


@pytest.mark.parametrize("size", [1.0, 0.0, 1e-4, 9.0])
@pytest.mark.parametrize("name", list(DYNAMIC))
def test_a_dynamic_layer_finds_its_grid(name: str, size: float, engine: str) -> None:
    """Also of zeros, and of numbers so small that PyTorch takes a larger scale."""
    torch.manual_seed(0)
    make, shape = DYNAMIC[name]
    model = ao.quantize_dynamic(nn.Sequential(make()).eval(), KINDS)
    expected, actual = compared(model, torch.randn(*shape) * size)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=2e-6)


class WithMore(nn.Module):
    """A product with what onednn computes along with it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        axes = (3, 3) if name.startswith("conv") else ()
        scales, zeros = torch.rand(8) / 99 + 0.001, torch.zeros(8, dtype=torch.int64)
        weight = torch.quantize_per_channel(torch.randn(8, 8, *axes) / 8, scales, zeros, 0, torch.qint8)
        packing = torch.ops.quantized
        self.packed = (
            packing.conv2d_prepack(weight, torch.randn(8), [1, 1], [1, 1], [1, 1], 1)
            if axes
            else packing.linear_prepack(weight, torch.randn(8))
        )

    def forward(self, x: Tensor) -> Tensor:
        # 7 bits: without VNNI, sums of two products of 8 bits saturate in onednn
        x = torch.quantize_per_tensor(x.clamp(-3.7, 3.7), 0.0626, 60, torch.quint8)
        more = [x] if self.name.startswith("conv") else []
        last = [0.1] if self.name.endswith("leaky_relu") else []
        out = getattr(torch.ops.quantized, self.name)(x, *more, self.packed, 0.0137, 90, *last)
        result: Tensor = out.dequantize()
        return result


@pytest.mark.parametrize("name", ["linear_leaky_relu", "linear_tanh", "conv2d_add", "conv2d_add_relu"])
def test_a_product_with_more_is_what_onednn_computes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr(torch.backends.quantized, "engine", "onednn")
    shape = (2, 8, 9, 9) if name.startswith("conv") else (90, 8)
    expected, actual = compared(WithMore(name), torch.randn(*shape))
    steps = (actual - expected).abs() / 0.0137
    assert steps.max() < 1.01
    assert (steps > 0.5).float().mean() < 0.01


def test_a_dynamic_convolution_is_not_supported() -> None:
    """PyTorch rounds its result to the grid of its input, beyond which it saturates."""
    layer = torch.ao.nn.quantized.dynamic.Conv2d(3, 4, 3)
    with pytest.raises(CaptureError, match="quantized::conv2d_dynamic is not supported"):
        compared(nn.Sequential(layer), torch.randn(2, 3, 9, 8))


def test_halves_are_not_supported() -> None:
    model = ao.quantize_dynamic(nn.Sequential(nn.Linear(4, 3)), {nn.Linear}, dtype=torch.float16)
    with pytest.raises(CaptureError, match="weights of float16"), integer_weights(model):
        pass
    assert model(torch.ones(1, 4)).shape == (1, 3)
