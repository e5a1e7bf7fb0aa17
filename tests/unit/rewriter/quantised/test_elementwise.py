"""Functions of quantised tensors on grids, against PyTorch's own kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core.errors import CaptureError
from t2n_core.rewriter.quantised.calls import QuantisedCalls
from t2n_core.rewriter.quantised.grid import QuantisedTensor

Q = torch.ops.quantized
SCALE, ZERO = 0.041237, 77
"""No ratio of scales is a simple one: sums would be ties, which PyTorch rounds by the noise of fused products."""


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[QuantisedCalls]:
    quantised_calls = QuantisedCalls("x86")
    monkeypatch.setattr(QuantisedTensor, "of_calls", quantised_calls.call)
    return quantised_calls


def tensor_of(*shape: int, scale: float = SCALE, zero: int = ZERO, dtype: torch.dtype = torch.quint8) -> Tensor:
    return torch.quantize_per_tensor(torch.randn(*shape) * 2, scale, zero, dtype)


def as_grids(value: Any) -> Any:
    if isinstance(value, Tensor) and value.is_quantized:
        return QuantisedTensor(value.int_repr().float(), value.q_scale(), value.q_zero_point(), value.dtype)
    return type(value)(map(as_grids, value)) if type(value) in (list, tuple) else value


def differing(calls: QuantisedCalls, function: Callable[..., Any], *args: Any) -> int:
    """Return how many numbers of a function are not PyTorch's. Other grids, and more than one step, are failures."""
    operands = as_grids(args)
    expected = function(*args)
    with calls:
        result = function(*operands)
    if not isinstance(result, QuantisedTensor):
        assert torch.equal(torch.as_tensor(result), torch.as_tensor(expected))
        return 0
    assert (result.zero, result.dtype, tuple(result.shape)) == (expected.q_zero_point(), expected.dtype, expected.shape)
    assert result.scale == pytest.approx(expected.q_scale(), rel=1e-6)
    steps = (result.integers - expected.int_repr().float()).abs()
    assert steps.max() <= 1
    return int((steps > 0).sum())


ONE: dict[str, Callable[[Any], Any]] = {
    "relu": torch.relu,
    "relu6": lambda x: Q.relu6(x, False),
    "hardtanh": lambda x: F.hardtanh(x, -1.0, 1.5),
    "clamp": lambda x: x.clamp(-0.5, 2.0),
    "clamp min": lambda x: torch.clamp(x, min=0.3),
    "sigmoid": torch.sigmoid,
    "sigmoid grid": lambda x: Q.sigmoid(x, 0.004, 3),
    "tanh": torch.tanh,
    "hardswish": lambda x: Q.hardswish(x, 0.05, 80),
    "hardsigmoid": F.hardsigmoid,
    "leaky_relu": lambda x: Q.leaky_relu(x, 0.1, False, 0.03, 90),
    "elu": lambda x: Q.elu(x, 0.03, 40, 0.7),
    "celu": lambda x: Q.celu(x, 0.03, 40, 0.7),
    "softmax": lambda x: Q.softmax(x, 1, 1 / 256, 0),
    "add a number": lambda x: Q.add_scalar(x, -0.7),
    "add a large number": lambda x: Q.add_scalar(x, 7.0),
    "subtract a large number": lambda x: Q.add_scalar(x, -9.0),
    "add and rectify": lambda x: Q.add_scalar_relu(x, 0.4),
    "times a number": lambda x: Q.mul_scalar(x, 1.7),
    "times a negative number": lambda x: Q.mul_scalar(x, -0.3),
    "add with a number": lambda x: Q.add(x, 1.5),
    "reshape": lambda x: x.reshape(2, -1),
    "size": lambda x: x.size(1),
    "slice": lambda x: x[:, 1:, ..., ::2],
    "chunk": lambda x: x.chunk(2, 1)[1],
    "split": lambda x: x.split(2, 1)[0],
    "transpose": lambda x: x.transpose(1, 2),
    "max_pool2d": lambda x: F.max_pool2d(x, 3, 2, 1),
    "pad": lambda x: F.pad(x, (1, 0, 2, 1)),
    "pad reflect": lambda x: F.pad(x, (1, 0, 2, 1), "reflect"),
    "nearest": lambda x: F.interpolate(x, scale_factor=2.0),
    "cat": lambda x: torch.cat([x, x], 1),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "stack": lambda x: torch.stack([x, x], -1),
    "dequantize": lambda x: x.dequantize(),
    "numbers": lambda x: x.int_repr(),
    "zero point": lambda x: x.q_zero_point(),
    "flatten": lambda x: torch.flatten(x, 1),
    "flip": lambda x: x.flip(3),
    "batch_norm": lambda x: Q.batch_norm2d_relu(
        x,
        torch.linspace(0.5, 2, 4),
        torch.linspace(-1, 1, 4),
        torch.ones(4) / 3,
        torch.linspace(1, 3, 4),
        1e-5,
        0.05,
        90,
    ),
    "layer_norm": lambda x: Q.layer_norm(x, [8], None, None, 1e-5, 0.03, 120),
    "group_norm": lambda x: Q.group_norm(x, 2, torch.ones(4), torch.zeros(4), 1e-5, 0.03, 120),
    "instance_norm": lambda x: Q.instance_norm(x, None, None, 1e-5, output_scale=0.03, output_zero_point=120),
}
TIES = {
    "mean": lambda x: x.mean([2, 3]),
    "mean of an axis": lambda x: x.mean(1),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, 3),
    "avg_pool1d": lambda x: F.avg_pool1d(x.flatten(0, 1), 4),
}
"""PyTorch rounds their ties by memory layout and number of channels."""


@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8])
@pytest.mark.parametrize("name", list(ONE))
def test_of_one_tensor(name: str, dtype: torch.dtype, calls: QuantisedCalls) -> None:
    torch.manual_seed(0)
    x = tensor_of(3, 4, 6, 8, dtype=dtype, zero=ZERO if dtype is torch.quint8 else 9)
    if dtype is torch.qint8 and name in _ONLY_QUINT8:
        return
    assert differing(calls, ONE[name], x) == 0


_ONLY_QUINT8 = ("hardsigmoid", "tanh", "sigmoid", "max_pool2d", "softmax")


@pytest.mark.parametrize("name", list(TIES))
def test_means_are_within_a_step(name: str, calls: QuantisedCalls) -> None:
    torch.manual_seed(0)
    x = tensor_of(3, 16, 8, 8)
    assert differing(calls, TIES[name], x) < 0.3 * TIES[name](x).numel()


TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: Q.add(a, b, 0.071713, 100),
    "add_relu": lambda a, b: Q.add_relu(a, b, scale=0.071713, zero_point=100),
    "mul": lambda a, b: Q.mul(a, b, 0.11, 60),
    "mul_relu": lambda a, b: Q.mul_relu(a, b, 0.11, 60),
    "cat": lambda a, b: Q.cat([a, b], 1, 0.06, 90),
    "cat_relu": lambda a, b: Q.cat_relu([a, b], 1, 0.06, 90),
    "cat named": lambda a, b: Q.cat([a, b], scale=0.06, zero_point=90, dim=1),
    "torch.cat": lambda a, b: torch.cat([a, b]),
    "matmul": lambda a, b: Q.matmul(a, b.transpose(1, 2), 0.4, 100),
}


@pytest.mark.parametrize("name", list(TWO))
def test_of_two_tensors(name: str, calls: QuantisedCalls) -> None:
    torch.manual_seed(0)
    a, b = tensor_of(3, 40, 50), tensor_of(3, 40, 50, scale=0.031413, zero=131)
    assert differing(calls, TWO[name], a, b) == 0


def test_what_is_written_in_place_is_seen_by_who_holds_it(calls: QuantisedCalls) -> None:
    x = tensor_of(2, 5)
    grid = as_grids(x)
    with calls:
        assert F.relu(grid, inplace=True) is grid
        grid.clamp_(max=0.5)
    assert torch.equal(grid.integers, x.relu().clamp(max=0.5).int_repr().float())


def test_what_is_not_supported_is_named(calls: QuantisedCalls) -> None:
    grid = as_grids(tensor_of(2, 5))
    with calls, pytest.raises(CaptureError, match="`sort` of a quantised tensor is not supported"):
        torch.sort(grid)
    with calls, pytest.raises(CaptureError, match=r"quantized::embedding_bag_2bit_unpack is not supported") as wrong:
        Q.embedding_bag_2bit_unpack(grid)
    assert "DeQuantStub" in str(wrong.value)
    with calls, pytest.raises(CaptureError, match=r"quantised tensors of torch\.qint32"):
        torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint32)
    with calls, pytest.raises(AttributeError):
        grid.no_such_method()
