"""The nets of suite `dynamic`: small ones, each around one thing that a varying size makes hard."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Axes = Mapping[str, Mapping[int, str]]
BT = {"x": {0: "B", 1: "T"}}
T1 = {"x": {1: "T"}}
T2 = {"x": {2: "T"}}
HW = {"x": {2: "H", 3: "W"}}


@dataclass(frozen=True)
class DynamicNet:
    """A net, its example inputs by name, and the axes that vary."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], dict[str, Tensor]]
    axes: Axes


class Function(nn.Module):
    """A function of the inputs."""

    def __init__(self, function: Callable[..., Any], names: int) -> None:
        super().__init__()
        self.function = function
        self.names = names

    def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
        return self.function(x) if self.names == 1 else self.function(x, y)


def _randn(*shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randn(shape)


def _ints(high: int, *shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randint(0, high, shape)


def of(
    function: Callable[..., Any], x: Callable[[], Tensor], axes: Axes, y: Callable[[], Tensor] | None = None
) -> DynamicNet:
    """Return a net that is a function, of one input or two."""
    inputs = {"x": x} if y is None else {"x": x, "y": y}
    return DynamicNet(lambda: Function(function, len(inputs)), lambda: {n: make() for n, make in inputs.items()}, axes)


def layer(make: Callable[[], nn.Module], x: Callable[[], Tensor], axes: Axes) -> DynamicNet:
    """Return a net that is a layer whose forward takes `x` or `input`."""
    return DynamicNet(lambda: Function(make().eval(), 1), lambda: {"x": x()}, axes)


class Layer(nn.Module):
    """Layers by name and what is done with them."""

    def __init__(self, function: Callable[..., Any], **layers: nn.Module) -> None:
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def net(
    function: Callable[..., Any], x: Callable[[], Tensor], axes: Axes, **layers: Callable[[], nn.Module]
) -> DynamicNet:
    return DynamicNet(
        lambda: Layer(function, **{name: make() for name, make in layers.items()}), lambda: {"x": x()}, axes
    )


# ----------------------------------------------------------------------------------------------------- longer functions
def _loop_over_bands(x: Tensor) -> Tensor:
    total = x[:, :, 0]
    for band in range(1, x.shape[2]):
        total = total * 0.5 + x[:, :, band].tanh()
    return total


def _leaky_sum(m: Layer, x: Tensor) -> Tensor:
    state = m.cell(x[:, 0])
    for step in range(1, 4):
        state = m.cell(x[:, step] + state)
    return state[:, None] * x[:, 4:].mean(2, keepdim=True)


def _sinusoids(x: Tensor) -> Tensor:
    position = torch.arange(x.shape[1], dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, 4, 2, dtype=torch.float32) * (-math.log(10000.0) / 4))
    return x + torch.cat([torch.sin(position * rate), torch.cos(position * rate)], dim=1)


def _causal(x: Tensor) -> Tensor:
    size = x.shape[1]
    scores = x @ x.transpose(1, 2)
    allowed = torch.ones(size, size, dtype=torch.bool).tril()
    return scores.masked_fill(~allowed, float("-inf")).softmax(-1) @ x


def _fill_steps(x: Tensor, steps: slice) -> Tensor:
    y = x.clone()
    y[:, steps] = 0.5
    return y


def _frames_by_strides(x: Tensor) -> Tensor:
    """Return overlapping frames as torchaudio.compliance.kaldi makes them; there is at least one."""
    frames = x.as_strided((x.shape[0] // 4, 3), (4, 1))
    return frames.square().sum(1) - frames.amax(0).sum()


def _relative(m: Layer, x: Tensor) -> Tensor:
    """Attention with a bias by distance, clipped to 3 steps."""
    position = torch.arange(x.shape[1])
    distance = (position[None, :] - position[:, None]).clamp(-3, 3) + 3
    scores = x @ x.transpose(1, 2) + m.bias(distance).squeeze(-1)
    return scores.softmax(-1) @ x


def _masked_mean(x: Tensor, y: Tensor) -> Tensor:
    """Return the mean over the first y[b] steps."""
    inside = torch.arange(x.shape[1])[None, :] < y[:, None]
    return (x * inside[:, :, None]).sum(1) / inside.sum(1, keepdim=True).clamp(min=1)


def _statistics_pooling(x: Tensor) -> Tensor:
    return torch.cat([x.mean(1), (x.var(1, correction=0) + 1e-5).sqrt()], dim=1)


def _attentive_pooling(m: Layer, x: Tensor) -> Tensor:
    share = m.score(torch.tanh(m.hidden(x))).softmax(dim=1)
    return (share * x).sum(1)


def _squeeze_excite(m: Layer, x: Tensor) -> Tensor:
    return x * torch.sigmoid(m.up(torch.relu(m.down(x.mean(2)))))[:, :, None]


def _padded_to_multiple(x: Tensor) -> Tensor:
    return F.pad(x, (0, 0, 0, (4 - x.shape[1] % 4) % 4)).unflatten(1, (-1, 4)).sum(2)


def _conformer_convolution(m: Layer, x: Tensor) -> Tensor:
    y = F.glu(m.point(x), dim=1)
    return m.out(F.silu(m.norm(m.depth(y)))) + x


def _subsampling(m: Layer, x: Tensor) -> Tensor:
    """[B, T, 8] to a quarter of the steps."""
    y = torch.relu(m.second(torch.relu(m.first(x[:, None]))))
    return m.out(y.transpose(1, 2).flatten(2))


def _attention(m: Layer, x: Tensor) -> Tensor:
    return m.inner(x, x, x, need_weights=False)[0]


def _linear_attention(x: Tensor) -> Tensor:
    key = F.elu(x) + 1
    return (key @ (key.transpose(1, 2) @ x)) / (key @ key.sum(1)[:, :, None])


def _rotary(x: Tensor) -> Tensor:
    half = x.shape[2] // 2
    angle = torch.arange(x.shape[1], dtype=torch.float32)[:, None] * torch.tensor([1.0, 0.1])
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)


def _as_after_training(made: nn.Module) -> nn.Module:
    """Statistics and weights as after training, where fresh ones would hide mistakes."""
    for name, tensor in [*made.named_parameters(), *made.named_buffers()]:
        if tensor.is_floating_point():
            with torch.no_grad():
                tensor.copy_(torch.rand_like(tensor) + 0.5 if "var" in name else torch.randn_like(tensor))
    return made.eval()


X = _randn(2, 7, 4)
"""[batch, time, features]."""
C = _randn(2, 4, 11)
"""[batch, channels, time]."""
P = _randn(2, 3, 9, 11)
"""[batch, channels, height, width]."""

NETS: dict[str, DynamicNet] = {
    # ------------------------------------------------------------------------------------------------------ reductions
    "sum_over_time": of(lambda x: x.sum(1), X, BT),
    "mean_over_time": of(lambda x: x.mean(1, keepdim=True), X, BT),
    "mean_of_all": of(lambda x: x.mean(), X, BT),
    "max_over_time": of(lambda x: x.amax(1), X, BT),
    "max_with_place": of(lambda x: torch.max(x, dim=1), X, T1),
    "argmin_over_time": of(lambda x: x.argmin(dim=1), X, BT),
    "product_over_time": of(lambda x: x.prod(1), X, T1),
    "variance_over_time": of(lambda x: x.var(1, correction=0), X, BT),
    "statistics_pooling": of(_statistics_pooling, X, BT),
    "logsumexp_over_time": of(lambda x: x.logsumexp(1), X, BT),
    "norm_over_time": of(lambda x: x.norm(dim=1), X, BT),
    "any_over_time": of(lambda x: (x > 1).any(1), X, BT),
    "count_over_time": of(lambda x: (x > 0).sum(1), X, BT),
    "cumulative_sum": of(lambda x: x.cumsum(1), X, BT),
    "cumulative_mean": of(lambda x: x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None], X, T1),
    "softmax_over_time": of(lambda x: x.softmax(1), X, BT),
    "log_softmax_over_time": of(lambda x: x.log_softmax(1), X, BT),
    "normalised_over_time": of(lambda x: F.normalize(x, dim=1), X, BT),
    # ------------------------------------------------------------------------------------- flips, slices, chunks, loops
    "flip_time": of(lambda x: x.flip(1), X, BT),
    "flip_time_and_batch": of(lambda x: x.flip((0, 1)), X, BT),
    "roll_time": of(lambda x: x.roll(1, 1), X, T1),
    "last_step": of(lambda x: x[:, -1], X, BT),
    "last_three_steps": of(lambda x: x[:, -3:], X, T1),
    "without_the_ends": of(lambda x: x[:, 1:-1], X, T1),
    "from_the_third_step": of(lambda x: x[:, 2:].mean(1), X, BT),
    "last_five_steps": of(lambda x: x[:, -5:].mean(1), X, T1),
    "between_the_quarters": of(lambda x: x[:, x.shape[1] // 4 : -(x.shape[1] // 4)], X, T1),
    "two_in_the_middle": of(lambda x: x[:, (x.shape[1] - 2) // 2 : (x.shape[1] - 2) // 2 + 2], X, T1),
    "cut_to_the_other": of(lambda x, y: x[:, : y.shape[1]] + y, X, {"x": {1: "T"}, "y": {1: "S"}}, _randn(2, 5, 4)),
    "step_of_the_other": of(
        lambda x, y: x[:, y.shape[1] - 1 : y.shape[1]] + y.sum(), X, {"y": {1: "S"}}, _randn(2, 3, 4)
    ),
    "padded_and_cut": of(lambda x: F.pad(x, (0, 0, 0, -x.shape[1] % 4))[:, :-3].tanh(), X, T1),
    "last_steps_written": of(lambda x: _fill_steps(x, slice(-2, None)), X, T1),
    "stacked_by_three": of(lambda x: x[:, : x.shape[1] // 3 * 3].reshape(x.shape[0], x.shape[1] // 3, 12), X, BT),
    "differences": of(lambda x: x[:, 1:] - x[:, :-1], X, BT),
    "every_second_step": of(lambda x: x[:, ::2], X, BT),
    "second_of_every_three": of(lambda x: x[:, 1::3], X, T1),
    "first_half": of(lambda x: x[:, : x.shape[1] // 2], X, T1),
    "halves_swapped": of(lambda x: torch.cat([x[:, x.shape[1] // 2 :], x[:, : x.shape[1] // 2]], 1), X, T1),
    "chunks_of_features": of(lambda x: torch.cat([c.tanh() for c in reversed(x.chunk(2, -1))], -1), X, BT),
    "split_of_features": of(lambda x: torch.stack(x.split([1, 2, 1], -1)[::2]), X, BT),
    "windows": of(lambda x: x.unfold(1, 3, 2), X, T1),
    "loop_over_bands": of(_loop_over_bands, X, BT),
    "loop_over_first_steps": net(_leaky_sum, X, {"x": {0: "B", 1: "T"}}, cell=lambda: nn.Linear(4, 4)),
    # ----------------------------------------------------------------------------------------------------------- shapes
    "flatten_time": of(lambda x: x.flatten(0, 1), X, BT),
    "flatten_features": of(lambda x: x.flatten(1), X, BT),
    "frames_stacked": of(lambda x: x.unflatten(1, (-1, 1)).flatten(2), X, BT),
    "padded_to_multiple": of(_padded_to_multiple, X, T1),
    "transposed_product": of(lambda x: x @ x.transpose(1, 2), X, BT),
    "outer_differences": of(lambda x: x[:, :, None] - x[:, None], X, BT),
    "distances": of(lambda x: torch.cdist(x, x), X, T1),
    "doubled_by_repetition": of(lambda x: x.repeat(1, 2, 1), X, BT),
    "steps_repeated": of(lambda x: x.repeat_interleave(2, 1), X, BT),
    "expanded_over_time": of(lambda x: x[:, :1].expand(-1, x.shape[1], -1) * x, X, BT),
    "joined_inputs": of(lambda x, y: torch.cat([x, y], 1), X, {"x": {1: "T"}, "y": {1: "S"}}, _randn(2, 3, 4)),
    "shared_size": of(lambda x, y: x * y + y, X, {"x": {0: "B", 1: "T"}, "y": {0: "B", 1: "T"}}, X),
    "einsum": of(lambda x, y: torch.einsum("btc,bsc->bts", x, y), X, {"x": {1: "T"}, "y": {1: "S"}}, _randn(2, 3, 4)),
    # ---------------------------------------------------------------------------------------------- sizes that are used
    "arange_of_size": of(lambda x: x + torch.arange(x.shape[1])[:, None], X, T1),
    "size_as_number": of(lambda x: x * x.shape[1] / (x.shape[0] + 1), X, BT),
    "root_of_size": of(lambda x: x.sum(1) / math.sqrt(x.shape[2]) + x.shape[1], X, BT),
    "root_of_dynamic_size": of(lambda x: (x / math.sqrt(x.shape[1]), x * x.shape[1] ** -0.5), X, BT),
    "quotients_of_sizes": of(lambda x: x * (1 / x.shape[1]) + x.shape[1] / (x.shape[0] + 1) - 0.5, X, BT),
    "extremes_of_sizes": of(lambda x: x / max(x.shape[1] - 1, 1) + min(x.shape[1], 5), X, T1),
    "filled_with_a_quotient": of(lambda x: x.mean() + torch.full((3,), x.shape[1] / 2), X, T1),
    "integers_and_a_quotient": of(lambda x: (x > 0).long() * (x.shape[1] / 2), X, T1),
    "linspace": of(lambda x: x * torch.linspace(-1, 1, x.shape[1])[:, None], X, T1),
    "centres": of(lambda x: x + torch.linspace(0.5, x.shape[1] - 0.5, x.shape[1])[:, None], X, T1),
    "zeros_of_size": of(lambda x: torch.cat([torch.zeros(x.shape[0], 1, 4), x], 1), X, BT),
    "ones_of_two_sizes": of(lambda x: torch.ones(x.shape[1], x.shape[0]) @ x[:, 0], X, BT),
    "sinusoids": of(_sinusoids, X, BT),
    "rotary": of(_rotary, X, BT),
    "learned_positions": net(
        lambda m, x: x + m.table(torch.arange(x.shape[1])), X, BT, table=lambda: nn.Embedding(40, 4)
    ),
    "lower_triangle": of(lambda x: (x @ x.transpose(1, 2)).tril(), X, T1),
    "causal_scores": of(_causal, X, BT),
    "masked_mean": of(_masked_mean, X, {"x": {0: "B", 1: "T"}, "y": {0: "B"}}, _ints(4, 2)),
    # ------------------------------------------------------------------------------------------------------- by index
    "embedding": net(lambda m, x: m.table(x), _ints(9, 2, 7), BT, table=lambda: nn.Embedding(9, 4)),
    "gather_over_time": of(lambda x, y: x.gather(1, y), X, {"x": {1: "T"}, "y": {1: "S"}}, _ints(1, 2, 3, 4)),
    "index_select": of(lambda x, y: x.index_select(2, y), X, {"x": {0: "B", 1: "T"}, "y": {0: "N"}}, _ints(4, 5)),
    "one_hot": of(lambda x: F.one_hot(x, 9), _ints(9, 2, 7), BT),
    "where": of(lambda x: torch.where(x > 0, x, x.mean(1, keepdim=True)), X, BT),
    "best_steps": of(lambda x: x.topk(1, dim=1)[0], X, T1),
    "best_share_of_steps": of(lambda x: x.topk(math.ceil(x.shape[1] * 0.3), dim=1)[0], X, T1),
    # --------------------------------------------------------------------------------------------------------- padding
    "pad_left": of(lambda x: F.pad(x, (3, 0)), C, T2),
    "pad_reflect": of(lambda x: F.pad(x, (2, 1), mode="reflect"), C, T2),
    "pad_replicate": of(lambda x: F.pad(x, (2, 1), mode="replicate"), C, T2),
    "pad_circular": of(lambda x: F.pad(x, (2, 1), mode="circular"), C, T2),
    "pad_negative": of(lambda x: F.pad(x, (-1, 2)), C, T2),
    # --------------------------------------------------------------------------------------------- convolution, pooling
    "conv": layer(lambda: nn.Conv1d(4, 5, 3, padding=1), C, {"x": {0: "B", 2: "T"}}),
    "conv_strided": layer(lambda: nn.Conv1d(4, 5, 5, stride=3, padding=2), C, T2),
    "conv_causal_dilated": net(
        lambda m, x: m.conv(F.pad(x, (8, 0))), C, T2, conv=lambda: nn.Conv1d(4, 5, 3, dilation=4)
    ),
    "conv_depthwise": layer(lambda: nn.Conv1d(4, 4, 7, padding=3, groups=4), C, T2),
    "conv_transposed": layer(lambda: nn.ConvTranspose1d(4, 3, 4, stride=2, padding=1), C, T2),
    "conv_image": layer(lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1), P, HW),
    "subsampling": net(
        _subsampling,
        _randn(2, 19, 8),
        T1,
        first=lambda: nn.Conv2d(1, 3, 3, 2),
        second=lambda: nn.Conv2d(3, 3, 3, 2),
        out=lambda: nn.Linear(3, 5),
    ),
    "conformer_convolution": net(
        _conformer_convolution,
        C,
        T2,
        point=lambda: nn.Conv1d(4, 8, 1),
        depth=lambda: nn.Conv1d(4, 4, 5, padding=2, groups=4),
        norm=lambda: _as_after_training(nn.BatchNorm1d(4)),
        out=lambda: nn.Conv1d(4, 4, 1),
    ),
    "max_pool": layer(lambda: nn.MaxPool1d(3, 2, padding=1), C, T2),
    "max_pool_ceil": layer(lambda: nn.MaxPool1d(2, 2, ceil_mode=True), C, T2),
    "max_pool_image": layer(lambda: nn.MaxPool2d((3, 2), (2, 1), padding=(1, 0)), P, HW),
    "avg_pool": layer(lambda: nn.AvgPool1d(4, 3, padding=2), C, T2),
    "avg_pool_without_padding_counted": layer(lambda: nn.AvgPool1d(3, 2, padding=1, count_include_pad=False), C, T2),
    "global_average": layer(lambda: nn.AdaptiveAvgPool1d(1), C, {"x": {0: "B", 2: "T"}}),
    "global_maximum": layer(lambda: nn.AdaptiveMaxPool2d(1), P, HW),
    "squeeze_excite": net(_squeeze_excite, C, T2, down=lambda: nn.Linear(4, 2), up=lambda: nn.Linear(2, 4)),
    "upsample": layer(lambda: nn.Upsample(scale_factor=2), C, T2),
    "upsample_linear": layer(lambda: nn.Upsample(scale_factor=2, mode="linear"), C, T2),
    "pixel_unshuffle": layer(lambda: nn.PixelUnshuffle(2), _randn(2, 3, 4, 6), HW),
    "frames_by_strides": of(_frames_by_strides, _randn(23), {"x": {0: "T"}}),
    "pixel_shuffle": layer(lambda: nn.PixelShuffle(2), _randn(2, 4, 5, 3), HW),
    # ---------------------------------------------------------------------------------------------------- normalisation
    "layer_norm": layer(lambda: _as_after_training(nn.LayerNorm(4)), X, BT),
    "group_norm": layer(lambda: _as_after_training(nn.GroupNorm(2, 4)), C, {"x": {0: "B", 2: "T"}}),
    "instance_norm": layer(lambda: _as_after_training(nn.InstanceNorm1d(4, affine=True)), C, {"x": {0: "B", 2: "T"}}),
    "batch_norm": layer(lambda: _as_after_training(nn.BatchNorm1d(4)), C, {"x": {0: "B", 2: "T"}}),
    "rms_norm": layer(lambda: _as_after_training(nn.RMSNorm(4)), X, BT),
    "local_response_norm": layer(lambda: nn.LocalResponseNorm(3), P, HW),
    # -------------------------------------------------------------------------------------------------------- attention
    "attention": net(_attention, X, BT, inner=lambda: nn.MultiheadAttention(4, 2, batch_first=True)),
    "attention_causal": of(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), X, BT),
    "attention_across": of(
        lambda x, y: F.scaled_dot_product_attention(x, y, y), X, {"x": {1: "T"}, "y": {1: "S"}}, _randn(2, 3, 4)
    ),
    "attention_relative": net(_relative, X, T1, bias=lambda: nn.Embedding(7, 1)),
    "attention_linear": of(_linear_attention, X, T1),
    "attentive_pooling": net(_attentive_pooling, X, BT, hidden=lambda: nn.Linear(4, 3), score=lambda: nn.Linear(3, 1)),
    "transformer_layer": layer(lambda: nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), X, BT),
    # -------------------------------------------------------------------------------------------------------- recurrent
    "lstm": net(lambda m, x: m.rnn(x)[0], X, BT, rnn=lambda: nn.LSTM(4, 3, batch_first=True)),
    "gru_both_ways": net(lambda m, x: m.rnn(x), X, BT, rnn=lambda: nn.GRU(4, 3, batch_first=True, bidirectional=True)),
    "rnn_last_state": net(lambda m, x: m.rnn(x)[1][-1], X, BT, rnn=lambda: nn.RNN(4, 3, 2, batch_first=True)),
}

LONGER = ("windows", "pad_reflect", "pad_circular", "subsampling", "pixel_unshuffle", "frames_by_strides")
"""Nets that PyTorch itself cannot run at a size of 1."""
