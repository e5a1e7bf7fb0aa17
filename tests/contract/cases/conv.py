"""Convolutions: sizes, kernels, strides and paddings all differ, so that a swapped axis shows."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from tests.contract.cases import build, case, randint, randn, weight

aten = torch.ops.aten
ALL = {0: {0: "B", 2: "H", 3: "W"}}


def _of_repeated(x: torch.Tensor, kernel: torch.Tensor, axis: int = 1) -> torch.Tensor:
    return F.conv1d(x.narrow(axis, 0, 1).expand_as(x), kernel)


def _encoded(x: torch.Tensor, first: torch.Tensor, kernel: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Four strided windows and a dense layer over what is left of the time, as encoders of waves begin."""
    x = F.conv1d(x, first, stride=5)
    for _ in range(3):
        x = F.conv1d(x.tanh(), kernel, stride=2)
    return F.linear(F.linear(x.mT, weight).tanh(), weight)


def _of_padded_channels(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """A number of channels that is 4 wherever the model runs, and made of a dynamic size."""
    return torch.nn.functional.conv1d(torch.nn.functional.pad(x, (0, 0, 0, -x.shape[1] % 4)), kernel)


COUPLED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a softmax": lambda x: x.softmax(2),
    "a softmax and an activation": lambda x: x.softmax(2).tanh(),
    "a product": lambda x: x.new_full((3, 3), 0.5) @ x,
    "a reshape": lambda x: x.unflatten(1, (1, 3)).flatten(0, 1),
    "attention": lambda x: F.scaled_dot_product_attention(x.mT, x.mT, x.mT).mT,
    "a pointwise conv": lambda x: F.conv1d(x, torch.ones(3, 3, 1).cumsum(0)).relu(),
    "the last element": lambda x: x[:, :, -1:],
    "the last three": lambda x: x[:, :, -3:],
}
"""Functions of which the engine moves the stride of what follows to before them."""


CASES = [
    case("conv1d by a dynamic number of filters", F.conv1d, randn(2, 3, 9), randn(4, 3, 5)).dynamic({1: {0: "O"}}),
    case("conv1d by filters of dynamic size", F.conv1d, randn(2, 3, 9), randn(4, 3, 5)).dynamic({1: {2: "K"}}),
    case(
        "conv1d of conv1d, all strided",
        _encoded,
        randn(2, 1, 190),
        *(weight(randn(*shape)) for shape in ((4, 1, 10), (4, 4, 3), (4, 4))),
    ).dynamic({0: {0: "B", 2: "T"}}),
    *(
        case(
            f"strided conv of one element after {name}",
            lambda x, w, function=function: F.conv1d(function(x), w, stride=2),
            randn(2, 3, 6),
            weight(randn(4, 3, 1)),
        ).dynamic({0: {2: "T"}})
        for name, function in COUPLED.items()
    ),
    case("conv2d narrower than its padding", build(nn.Conv2d, 3, 4, 7, 2, 3), randn(2, 3, 9, 1)),
    case("conv2d narrow in one axis", build(nn.Conv2d, 3, 4, (1, 5), 1, (0, 2)), randn(2, 3, 9, 1)),
    case("conv2d narrow, dynamic", build(nn.Conv2d, 3, 4, 7, 1, 3), randn(2, 3, 9, 8)).dynamic({0: {2: "H", 3: "W"}}),
    case("window of 1 over a repeated channel", _of_repeated, randn(2, 3, 7), weight(randn(5, 3, 1))).dynamic(
        {0: {2: "T"}}
    ),
    case("window of 1 over a repeated step", _of_repeated, randn(2, 3, 7), weight(randn(5, 3, 1)), 2),
    case("conv1d", build(nn.Conv1d, 3, 5, 3, stride=2, padding=2, dilation=2), randn(2, 3, 17)).dynamic(
        {0: {0: "B", 2: "T"}}
    ),
    case("conv1d same", build(nn.Conv1d, 3, 5, 4, padding="same", dilation=3), randn(2, 3, 17)).dynamic(
        {0: {0: "B", 2: "T"}}
    ),
    case("conv1d valid, groups", build(nn.Conv1d, 4, 6, 4, padding="valid", groups=2, bias=False), randn(1, 4, 17)),
    case("conv1d of padded channels", _of_padded_channels, randn(2, 3, 9), weight(randn(5, 4, 3))).dynamic(
        {0: {1: "T"}}
    ),
    case("conv1d unbatched", build(nn.Conv1d, 4, 6, 4), randn(4, 17)).dynamic({0: {1: "T"}}),
    case("conv2d", build(nn.Conv2d, 4, 6, (3, 2), (2, 3), (1, 2), (2, 1), groups=2), randn(2, 4, 13, 16)).dynamic(ALL),
    case("conv2d depthwise", build(nn.Conv2d, 4, 4, (3, 5), padding=(1, 2), groups=4), randn(2, 4, 13, 16)),
    case("conv1d depthwise", build(nn.Conv1d, 4, 4, 5, padding=2, groups=4), randn(2, 4, 13)).dynamic({0: {2: "T"}}),
    *(
        case(
            f"conv2d depthwise {size}, dynamic",
            build(nn.Conv2d, 4, 4, size, padding=padding, groups=4),
            randn(2, 4, 9, 7),
        ).dynamic({0: {0: "B", 2: "H", 3: "W"}})
        for size, padding in (((3, 5), (1, 2)), ((1, 5), (0, 2)), ((5, 1), (2, 0)), ((1, 1), (0, 0)))
    ),
    case(
        "conv1d depthwise, same", build(nn.Conv1d, 4, 4, 4, padding="same", dilation=2, groups=4), randn(2, 4, 13)
    ).dynamic({0: {0: "B", 2: "T"}}),
    case("conv1d depthwise, no bias", build(nn.Conv1d, 4, 4, 3, groups=4, bias=False), randn(2, 4, 13)).dynamic(
        {0: {2: "T"}}
    ),
    case("conv1d depthwise, strided", build(nn.Conv1d, 4, 4, 3, 2, groups=4), randn(2, 4, 13)).dynamic({0: {2: "T"}}),
    case("conv1d depthwise, multiplied", build(nn.Conv1d, 4, 8, 3, groups=4), randn(2, 4, 13)).dynamic({0: {2: "T"}}),
    case("conv1d depthwise, wide", build(nn.Conv1d, 3, 3, 65, padding=32, groups=3), randn(2, 3, 70)).dynamic(
        {0: {2: "T"}}
    ),
    case(
        "conv1d depthwise of float64",
        build(lambda: nn.Conv1d(4, 4, 3, groups=4).double()),
        randn(2, 4, 9, dtype=torch.float64),
    ).dynamic({0: {2: "T"}}),
    case(
        "conv2d depthwise, dynamic",
        build(nn.Conv2d, 4, 4, (3, 2), padding=(1, 0), dilation=(1, 3), groups=4),
        randn(2, 4, 7, 9),
    ).dynamic(ALL),
    case("conv3d depthwise", build(nn.Conv3d, 3, 3, 2, groups=3), randn(1, 3, 4, 5, 6)).dynamic({0: {3: "H"}}),
    case("conv2d to one channel", build(nn.Conv2d, 4, 1, (3, 5)), randn(2, 4, 13, 16)),
    case("conv2d, reflected", build(nn.Conv2d, 2, 3, 3, padding=(2, 1), padding_mode="reflect"), randn(2, 2, 5, 6)),
    case("conv2d, circular", build(nn.Conv2d, 2, 3, 3, padding=(2, 1), padding_mode="circular"), randn(2, 2, 5, 6)),
    case("conv2d, replicated", build(nn.Conv2d, 2, 3, 3, padding=(2, 1), padding_mode="replicate"), randn(2, 2, 5, 6)),
    case(
        "conv2d with a computed filter",
        F.conv2d,
        randn(3, 4, 7, 9),
        randn(6, 2, 3, 2),
        randn(6),
        (2, 1),
        (1, 2),
        (1, 2),
        2,
    ).dynamic({0: {0: "B"}}),
    case("conv2d with a computed bias", F.conv2d, randn(3, 4, 7, 9), weight(randn(6, 4, 3, 2)), randn(6)),
    case("conv2d of float64", build(lambda: nn.Conv2d(4, 6, (3, 2)).double()), randn(2, 4, 9, 8, dtype=torch.float64)),
    case("conv2d of integers", F.conv2d, randint(-5, 5, 1, 2, 5, 6), weight(randint(-5, 5, 3, 2, 2, 2))).refused(
        "convolution of int64"
    ),
    case("conv3d", build(nn.Conv3d, 2, 3, (3, 2, 1), (1, 2, 3), (1, 0, 2)), randn(2, 2, 5, 6, 7)).dynamic(ALL),
    case(
        "convolution", aten.convolution, randn(2, 3, 9), weight(randn(4, 3, 2)), None, [2], [1], [1], False, [0], 1
    ).dynamic({0: {2: "T"}}),
    case(
        "_convolution",
        aten._convolution,
        randn(2, 3, 9),
        weight(randn(4, 3, 2)),
        weight(randn(4)),
        [1],
        [1],
        [1],
        False,
        [0],
        1,
        False,
        False,
        False,
        False,
    ),
    case(
        "convolution transposed",
        aten.convolution,
        randn(2, 3, 9),
        weight(randn(3, 4, 2)),
        None,
        [2],
        [1],
        [1],
        True,
        [0],
        1,
    ),
    case("conv_transpose1d", build(nn.ConvTranspose1d, 3, 5, 4, stride=2, padding=1), randn(2, 3, 17)).dynamic(
        {0: {0: "B", 2: "T"}}
    ),
    case("conv_transpose1d, output padding", build(nn.ConvTranspose1d, 3, 5, 3, 3, 0, 2), randn(2, 3, 7)).dynamic(
        {0: {0: "B", 2: "T"}}
    ),
    case(
        "conv_transpose2d",
        build(nn.ConvTranspose2d, 4, 6, (3, 2), (2, 3), (1, 0), (1, 2), 2, True, (1, 2)),
        randn(2, 4, 5, 7),
    ).dynamic(ALL),
    case(
        "conv_transpose2d, square groups",
        build(nn.ConvTranspose2d, 4, 4, (3, 2), (2, 3), (1, 1), 0, 2),
        randn(1, 4, 5, 7),
    ),
    case(
        "conv_transpose2d depthwise", build(nn.ConvTranspose2d, 4, 4, (3, 2), groups=4, bias=False), randn(1, 4, 5, 7)
    ),
    *(
        case(
            f"conv_transpose1d, {k} every {s}, {n} groups",
            build(nn.ConvTranspose1d, 4, 6, k, s, groups=n),
            randn(2, 4, 7),
        ).dynamic(axes)
        for axes, n in (({}, 1), ({0: {0: "B", 2: "T"}}, 2))
        for k, s in ((1, 1), (1, 2), (2, 3), (3, 5))
    ),
    case(
        "conv_transpose2d, one place, groups",
        build(nn.ConvTranspose2d, 4, 6, 1, (2, 3), (1, 0), (0, 2), 2),
        randn(2, 4, 5, 7),
    ).dynamic({0: {2: "H", 3: "W"}}),
    *(
        case(f"{name} with filters of dynamic size", f, randn(2, 4, 9, 8), randn(4, 2, 3, 2), randn(4)).dynamic(
            {0: {0: "B", 2: "H", 3: "W"}, 1: {2: "K", 3: "L"}}
        )
        for name, f in {
            "conv2d": lambda x, w, b: F.conv2d(x, w, b, (2, 1), (0, 2), (1, 2), 2),
            "conv2d, same": lambda x, w, b: F.conv2d(x, w, b, padding="same", groups=2),
            "conv1d": lambda x, w, b: F.conv1d(x[:, :, 0], w[:, :, 0], b, groups=2),
            "conv_transpose2d": lambda x, w, b: F.conv_transpose2d(x, w, b, (2, 1), (1, 0), (1, 0), 2),
        }.items()
    ),
    case(
        "conv2d of every second place of an input of dynamic size",
        lambda x, w: F.conv2d(x, w, stride=2).softmax(2).softmax(3),
        randn(2, 3, 9, 8),
        randn(4, 3, 1, 1),
    ).dynamic({0: {0: "B", 2: "H", 3: "W"}}),
    case("conv_transpose2d unbatched", build(nn.ConvTranspose2d, 4, 6, (3, 2)), randn(4, 5, 7)),
    case(
        "conv_transpose2d with a computed filter",
        F.conv_transpose2d,
        randn(2, 4, 5, 7),
        randn(4, 3, 3, 2),
        randn(6),
        (2, 3),
        (1, 2),
        (1, 0),
        2,
        (2, 1),
    ).dynamic({0: {0: "B"}}),
    case("conv_transpose3d", build(nn.ConvTranspose3d, 2, 3, (3, 2, 2), (1, 2, 2), (1, 0, 1)), randn(2, 2, 5, 6, 7)),
]
