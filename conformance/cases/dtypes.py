"""The nets of suite `dtypes`: what can be asked of each dtype, from input over weights to output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FLOATS = (torch.float16, torch.float32, torch.float64)
SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)
UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
INTEGERS = (*SIGNED, torch.uint8)
"""Integers that PyTorch computes with; wider unsigned types only have storage, copies and casts."""
ALL = (torch.bool, *SIGNED, *UNSIGNED, *FLOATS)


@dataclass(frozen=True)
class TypedNet:
    """A net on `inputs` tensors of one dtype."""

    make: Callable[[torch.dtype], nn.Module]
    dtypes: Sequence[torch.dtype]
    inputs: int = 1
    shape: tuple[int, ...] = (3, 4)
    axes: dict[int, str] | None = None


class Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
        return self.function(x) if y is None else self.function(x, y)


class Layered(nn.Module):
    def __init__(self, layer: nn.Module, call: Callable[[Any, Tensor], Any] | None) -> None:
        super().__init__()
        self.layer = layer
        self.call = call

    def forward(self, x: Tensor) -> Any:
        return self.layer(x) if self.call is None else self.call(self.layer, x)


class Weighted(nn.Module):
    """A weight of the dtype, added to and read by index."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("weight", sample(dtype, (3, 4)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.cat([x, self.weight]), self.weight[:2]  # type: ignore[index]


def function(of: Callable[..., Any]) -> Callable[[torch.dtype], nn.Module]:
    return lambda dtype: Function(of)


def layer(
    make: Callable[[], nn.Module], call: Callable[[Any, Tensor], Any] | None = None
) -> Callable[[Any], nn.Module]:
    """Return a layer in the dtype; `call` says what is done with it."""
    return lambda dtype: Layered(make().to(dtype), call)


def sample(dtype: torch.dtype, shape: Sequence[int]) -> Tensor:
    """Signed where the dtype is, small enough that sums and products stay within it."""
    if dtype == torch.bool:
        return torch.rand(tuple(shape)) < 0.5
    if dtype.is_floating_point:
        return torch.randn(tuple(shape), dtype=torch.float64).to(dtype)
    return torch.randint(0 if dtype in UNSIGNED else -5, 6, tuple(shape)).to(dtype)


def _divisors(y: Tensor) -> Tensor:
    return y.abs() + 1


BT = {0: "B"}
NETS: dict[str, TypedNet] = {
    # ------------------------------------------------------------------------------------- what every dtype can do
    "through": TypedNet(function(lambda x: x.clone()), ALL, axes=BT),
    "shapes": TypedNet(function(lambda x: x.T.reshape(-1)[None]), ALL),
    "joined": TypedNet(function(lambda x, y: torch.cat([x, y], 1)), ALL, inputs=2),
    "weight": TypedNet(Weighted, (torch.bool, *INTEGERS, *FLOATS)),
    "weight_uint": TypedNet(Weighted, UNSIGNED[1:]),
    "repeated": TypedNet(function(lambda x: x[:, None].expand(-1, 2, -1)), ALL, axes=BT),
    "slices": TypedNet(function(lambda x: x[1:, ::2]), ALL),
    "by_index": TypedNet(function(lambda x: x[:, torch.tensor([2, 0])]), (torch.bool, *INTEGERS, *FLOATS)),
    "flipped": TypedNet(function(lambda x: x.flip(0)), (torch.bool, *INTEGERS, *FLOATS)),
    "padded": TypedNet(function(lambda x: F.pad(x, (1, 2))), (*INTEGERS, *FLOATS)),
    "selected": TypedNet(function(lambda x, y: torch.where(x == y, x, y)), (torch.bool, *INTEGERS, *FLOATS), 2),
    "compared": TypedNet(function(lambda x, y: (x < y, x >= y, x != y)), (*INTEGERS, *FLOATS), 2),
    # ----------------------------------------------------------------------------------------------------- arithmetic
    "sum_of_two": TypedNet(function(lambda x, y: x + y * 2), (*INTEGERS, *FLOATS), 2, axes=BT),
    "difference": TypedNet(function(lambda x, y: x - y), (*SIGNED, *FLOATS), 2),
    "product": TypedNet(function(lambda x, y: x * y), (*INTEGERS, *FLOATS), 2),
    "true_quotient": TypedNet(function(lambda x, y: x / _divisors(y)), (*INTEGERS, *FLOATS), 2),
    "floor_quotient": TypedNet(function(lambda x, y: x // _divisors(y)), (*SIGNED, torch.uint8), 2),
    "remainder": TypedNet(function(lambda x, y: x % _divisors(y)), (*SIGNED, torch.uint8), 2),
    "absolute_and_sign": TypedNet(function(lambda x: (x.abs(), x.sign(), -x)), (*SIGNED, *FLOATS)),
    "clamped": TypedNet(function(lambda x: x.clamp(-1, 2)), (*SIGNED, *FLOATS)),
    "larger_and_smaller": TypedNet(function(lambda x, y: (x.maximum(y), x.minimum(y))), (*INTEGERS, *FLOATS), 2),
    "number_of_python": TypedNet(function(lambda x: (x + 3, 2 - x, x * 0.5)), (*SIGNED, *FLOATS)),
    # ------------------------------------------------------------------------------------------------------ reductions
    "sums": TypedNet(function(lambda x: (x.sum(0), x.sum())), (torch.bool, *INTEGERS, *FLOATS), axes=BT),
    "extremes": TypedNet(function(lambda x: (x.amax(0), x.amin(1))), (*INTEGERS, *FLOATS), axes=BT),
    "places": TypedNet(function(lambda x: (x.argmax(0), x.argmin(1))), (*INTEGERS, *FLOATS)),
    "any_and_all": TypedNet(function(lambda x: (x.any(0), x.all(1))), (torch.bool, *INTEGERS, *FLOATS)),
    "cumulative": TypedNet(function(lambda x: x.cumsum(0)), (*INTEGERS, *FLOATS)),
    "means": TypedNet(function(lambda x: x.mean(0)), FLOATS, axes=BT),
    # ------------------------------------------------------------------------------------------------------------ bits
    "logic": TypedNet(function(lambda x, y: (x & y, x | y, x ^ y, ~x)), (torch.bool, *INTEGERS), 2),
    "shifts": TypedNet(function(lambda x: (x << 1, x >> 1)), SIGNED),
    # ----------------------------------------------------------------------------------------------------------- casts
    "to_float32": TypedNet(function(lambda x: x.float() * 0.5), (torch.bool, *SIGNED, *UNSIGNED, *FLOATS)),
    "to_float16": TypedNet(function(lambda x: x.half()), (torch.bool, *INTEGERS, *FLOATS)),
    "to_float64": TypedNet(function(lambda x: x.double()), (torch.bool, *INTEGERS, *FLOATS)),
    "to_int64": TypedNet(function(lambda x: x.long() + 1), (torch.bool, *SIGNED, *UNSIGNED, *FLOATS)),
    "to_int32": TypedNet(function(lambda x: x.int()), (torch.bool, *INTEGERS, *FLOATS)),
    "to_int8": TypedNet(function(lambda x: x.to(torch.int8)), (torch.bool, *INTEGERS, *FLOATS)),
    "to_uint8": TypedNet(function(lambda x: x.abs().to(torch.uint8)), (*SIGNED, *FLOATS)),
    "to_bool": TypedNet(function(lambda x: x.bool()), (*INTEGERS, *FLOATS)),
    "mixed": TypedNet(function(lambda x: x + torch.tensor([0.5, 1.5, 2.5, 3.5])), (torch.bool, *INTEGERS, *FLOATS)),
    # ---------------------------------------------------------------------------------------------------------- layers
    "matmul": TypedNet(function(lambda x, y: x @ y.T), FLOATS, 2, axes=BT),
    "matmul_of_integers": TypedNet(function(lambda x, y: x @ y.T), (torch.int32, torch.int64), 2),
    "functions": TypedNet(function(lambda x: (x.exp(), x.tanh(), x.sigmoid(), (x.abs() + 1).log())), FLOATS),
    "trigonometry": TypedNet(function(lambda x: (x.sin(), x.cos(), x.sqrt().nan_to_num(0.5))), FLOATS),
    "activations": TypedNet(function(lambda x: (F.relu(x), F.gelu(x), F.silu(x), F.elu(x), F.hardtanh(x))), FLOATS),
    "softmax": TypedNet(function(lambda x: (x.softmax(1), x.log_softmax(0))), FLOATS, axes=BT),
    "linear": TypedNet(layer(lambda: nn.Linear(4, 5)), FLOATS, axes=BT),
    "conv": TypedNet(layer(lambda: nn.Conv1d(4, 5, 3, padding=1)), FLOATS, shape=(2, 4, 9), axes={2: "T"}),
    "conv_transposed": TypedNet(layer(lambda: nn.ConvTranspose1d(4, 3, 3, stride=2)), FLOATS, shape=(2, 4, 5)),
    "batch_norm": TypedNet(layer(lambda: nn.BatchNorm1d(4)), FLOATS, shape=(2, 4, 5), axes={2: "T"}),
    "layer_norm": TypedNet(layer(lambda: nn.LayerNorm(4)), FLOATS, axes=BT),
    "group_norm": TypedNet(layer(lambda: nn.GroupNorm(2, 4)), FLOATS, shape=(2, 4, 5)),
    "rms_norm": TypedNet(layer(lambda: nn.RMSNorm(4)), FLOATS),
    "max_pool": TypedNet(layer(lambda: nn.MaxPool1d(3, 2, padding=1)), FLOATS, shape=(2, 4, 9)),
    "avg_pool": TypedNet(layer(lambda: nn.AvgPool1d(3, 2)), FLOATS, shape=(2, 4, 9)),
    "embedding": TypedNet(layer(lambda: nn.Embedding(7, 4), lambda m, x: m((x.abs() * 3).long().clamp(0, 6))), FLOATS),
    "attention": TypedNet(
        function(lambda x: F.scaled_dot_product_attention(x, x, x)), FLOATS, shape=(2, 5, 4), axes={1: "T"}
    ),
    "upsample": TypedNet(layer(lambda: nn.Upsample(scale_factor=2, mode="linear")), FLOATS, shape=(2, 4, 5)),
    "lstm": TypedNet(
        layer(lambda: nn.LSTM(4, 3, batch_first=True), lambda m, x: m(x)[0]), FLOATS, shape=(2, 5, 4), axes={1: "T"}
    ),
    "gru": TypedNet(layer(lambda: nn.GRU(4, 3, bidirectional=True)), FLOATS, shape=(5, 2, 4)),
    "rnn": TypedNet(layer(lambda: nn.RNN(4, 3, nonlinearity="relu")), FLOATS, shape=(5, 2, 4), axes={0: "T"}),
}


def all_cases() -> Iterator[tuple[str, str]]:
    """(net, dtype)."""
    for name, net in NETS.items():
        for dtype in net.dtypes:
            yield name, str(dtype).removeprefix("torch.")
