"""New tensors, of sizes and dtypes of others."""

from __future__ import annotations

import math

import torch

from tests.contract.cases import case, randint, randn, tensor

aten, prims = torch.ops.aten, torch.ops.prims
B, BT = {0: {0: "B"}}, {0: {0: "B", 1: "T"}}
LIKE = "zeros_like ones_like".split()
NEW = "new_zeros new_ones".split()


def _ramp(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(x.shape[1]) + x


PS = {0: {1: "P"}, 1: {1: "S"}}


def causal(past: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The mask of a decoder with a past, whose length is read off a tensor of positions."""
    positions = torch.arange(past.shape[1], past.shape[1] + x.shape[1])
    length = positions[0] + x.shape[1] + 1
    return torch.full((x.shape[1], length), -3.0) * (torch.arange(length) > positions[:, None])


def read(past: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """As many steps as the last position says."""
    positions = torch.arange(past.shape[1], past.shape[1] + x.shape[1])
    return torch.cat([past, x], 1)[:, : positions.max() + 1].cumsum(1)


def written_through_a_view(x: torch.Tensor) -> torch.Tensor:
    positions = torch.arange(x.shape[1])
    positions[-1:].fill_(3)
    return torch.arange(positions[-1] + 1)


CASES = [
    case("arange to a position", causal, randn(2, 12, 3), randn(2, 5, 3)).dynamic(PS),
    case("arange to a position, static", causal, randn(2, 12, 3), randn(2, 5, 3)),
    case("slice to a position", read, randn(2, 12, 3), randn(2, 5, 3)).dynamic(PS),
    case(
        "arange from a tensor to a size behind",
        lambda a, x: torch.arange(a, a + x.shape[1]) + x,
        tensor(7),
        randn(2, 5),
    ).dynamic({1: {1: "T"}}),
    case("arange of a position written through a view", written_through_a_view, randn(2, 7))
    .dynamic(BT)
    .refused("length of torch.arange depends on"),
    case("arange from a tensor to another", lambda a, b: torch.arange(a, b, 2), tensor(1), tensor(9)).refused(
        "length of torch.arange depends on"
    ),
    *(case(name, getattr(torch, name), randn(2, 3)).dynamic(BT) for name in LIKE),
    *(case(f"{name} dtype", getattr(torch, name), randn(2, 3), dtype=torch.int64) for name in LIKE),
    *(case(name, lambda x, n=name: getattr(x, n)(x.shape[0], 4), randn(2, 3)).dynamic(B) for name in NEW),
    case("zeros", lambda x: torch.zeros(x.shape[0], 4) + x, randn(2, 4)).dynamic(B),
    case("zeros of bool", lambda x: torch.zeros(x.shape[0], 4, dtype=torch.bool) | (x > 0), randn(2, 4)).dynamic(B),
    case("ones", lambda x: torch.ones(x.shape[0], 4) + x, randn(2, 4)).dynamic(B),
    case("full", lambda x: torch.full((x.shape[0], 4), 2.5) + x, randn(2, 4)).dynamic(B),
    *(
        case(f"{name} gives the shape", function, randn(2, 3)).dynamic(B)
        for name, function in {
            "ones in a product": lambda x: torch.ones(x.shape[0], dtype=torch.int64) * 3,
            "zeros in a product": lambda x: torch.zeros(x.shape[0], dtype=torch.int64) * x[0, :1].long(),
            "ones in a quotient": lambda x: torch.ones(x.shape[0], dtype=torch.int64) // 2,
            "full divisor": lambda x: (9 * x[0, :1]).long() // torch.full((x.shape[0],), 4),
            "full exponent": lambda x: x[0, :1].abs() ** torch.full((x.shape[0],), 2.0),
            "full condition": lambda x: (x[0, :1] > 0) & torch.ones(x.shape[0], dtype=torch.bool),
            "full choice": lambda x: torch.where(torch.ones(x.shape[0], dtype=torch.bool), x[0, :1], 0.5),
            "sum of ones": lambda x: torch.ones(x.shape[0], dtype=torch.int64).sum() * x,
        }.items()
    ),
    *(
        case(f"{name} of known size gives the shape", function, randn(2, 3))
        for name, function in {
            "full divisor": lambda x: (9 * x[0, :1]).long() // torch.full((5,), 4),
            "full exponent": lambda x: x[0, :1].abs() ** torch.full((5,), 2.0),
        }.items()
    ),
    case(
        "half of a size", lambda x: x * (torch.tensor(x.shape[0]) * 0.5 - torch.tensor(x.shape[0] // 2)), randn(2, 3)
    ).dynamic(B),
    case("full of a size", lambda x: torch.full((x.shape[0],), x.shape[0]), randn(2, 4)).dynamic(B),
    case("full_like", torch.full_like, randn(2, 3), 2.5).dynamic(BT),
    case("full_like of integers", torch.full_like, randint(0, 9, 2, 3), 7),
    case("new_full", lambda x: x.new_full((3, x.shape[0]), -1), randn(2, 3)).dynamic(B),
    *(
        case(name, lambda x, n=name: torch.zeros_like(getattr(torch, n)(x)) + x, randn(2, 3)).dynamic(BT).at("exact")
        for name in ("empty_like",)
    ),
    case("new_empty", lambda x: torch.zeros_like(x.new_empty(3, x.shape[0])), randn(2, 3)).dynamic(B),
    case("empty filled", lambda x: torch.empty(x.shape[0], 3).fill_(2.0) + x, randn(2, 3)).dynamic(B),
    case("empty", lambda x: torch.zeros_like(torch.empty(x.shape[0], 3)) + x, randn(2, 3)).dynamic(B),
    case(
        "empty_strided", lambda x: torch.zeros_like(torch.empty_strided((x.shape[0], 3), (3, 1))) + x, randn(2, 3)
    ).dynamic(B),
    case(
        "new_empty_strided", lambda x: torch.zeros_like(x.new_empty_strided((x.shape[0], 3), (3, 1))) + x, randn(2, 3)
    ).dynamic(B),
    case("zero", lambda x: x.clone().zero_(), randn(2, 3)),
    case("fill", lambda x: x.clone().fill_(2.5), randn(2, 3)).dynamic(B),
    case("fill tensor", lambda x, y: x.clone().fill_(y), randn(2, 3), randn()),
    case("copy", lambda x, y: x.clone().copy_(y), randn(2, 3), randint(-9, 9, 3)),
    case("scalar_tensor", lambda x: torch.scalar_tensor(x.shape[0]) + x, randn(2, 3)).dynamic(B),
    case("arange", _ramp, randn(2, 3)).dynamic(BT),
    case("arange start", lambda x: torch.arange(1, x.shape[1] + 1) + x, randn(2, 3)).dynamic(BT),
    case("arange step", lambda x: torch.arange(0, 2 * x.shape[1], 2) + x, randn(2, 3)).dynamic(BT),
    *(
        case(f"arange {name}", function, randn(2, 7)).dynamic({0: {1: "T"}})
        for name, function in {
            "down by 1.0": lambda x: torch.arange(x.shape[1] - 1, -1, -1.0) * x,
            "by a half": lambda x: torch.arange(0, x.shape[1], 0.5) + x[0, 0],
            "by 1.5": lambda x: torch.arange(-2.5, x.shape[1], 1.5) + x[0, 0],
            "by 1.5 downwards": lambda x: torch.arange(2 * x.shape[1], 0.25, -1.5) + x[0, 0],
            "by 1.5 in integers": lambda x: torch.arange(0, x.shape[1], 1.5, dtype=torch.int64) + x[0, 0],
            "by 2.5 in short integers": lambda x: torch.arange(0.5, x.shape[1], 2.5, dtype=torch.int32) + x[0, 0],
            "by a size": lambda x: torch.arange(0, 3 * x.shape[1], x.shape[1]) + x[0, 0],
            "by a size down to a constant": lambda x: torch.arange(2 * x.shape[1], -1, -x.shape[1]) + x[0, 0],
        }.items()
    ),
    case("arange by a tenth", lambda x: torch.arange(0, x.shape[1], 0.1) + x[0, 0], randn(2, 7)).dynamic({0: {1: "T"}}),
    case("arange by seven tenths", lambda x: torch.arange(0, x.shape[1], 0.7) + x[0, 0], randn(2, 7))
    .dynamic({0: {1: "T"}})
    .refused("computed in floating point"),
    case("arange of floats", lambda x: torch.arange(x.shape[1], dtype=torch.float32) * x, randn(2, 3)).dynamic(BT),
    case("arange fixed", lambda x: torch.arange(3) + x, randn(2, 3)),
    case("eye", lambda x: torch.eye(x.shape[0]) @ x, randn(2, 3)).dynamic(B),
    case("eye of two sizes", lambda x: torch.eye(x.shape[0], x.shape[1]) + x, randn(2, 3)).dynamic(BT),
    case("linspace", lambda x: torch.linspace(x[0], 2.5, 7), randn(4)),
    *(
        case(name, lambda x, n=name: x * getattr(torch, n)(x.shape[1], periodic=False), randn(2, 6)).dynamic(
            {0: {1: "T"}}
        )
        for name in ("hann_window", "hamming_window", "blackman_window")
    ),
    case("logarithm of a size", lambda x: x * (math.log(x.shape[1]) / math.log(512)), randn(2, 6)).dynamic(
        {0: {1: "T"}}
    ),
    case("least of 1 and a quotient of a size", lambda x: x * min(1.0, x.shape[1] / 8), randn(2, 6)).dynamic(
        {0: {1: "T"}}
    ),
    case("linspace fixed", lambda x: torch.linspace(-1, 1, 3) + x, randn(4, 3)),
    case(
        "positions mask", lambda x, n: torch.arange(x.shape[1])[None] < n[:, None], randn(3, 5), tensor([1, 5, 3])
    ).dynamic({0: {1: "T"}}),
    case(
        "prims.full",
        lambda x: prims.full([x.shape[0], 3], 2.5, dtype=x.dtype, device=x.device, requires_grad=False),
        randn(2, 3),
    ).dynamic(B),
    case("prims.fill", lambda x: prims.fill(x, 2.5), randn(2, 3)),
    case(
        "prims.scalar_tensor",
        lambda x: prims.scalar_tensor(x.shape[0], dtype=torch.float32, device=x.device) * x,
        randn(2, 3),
    ).dynamic(B),
    case(
        "prims.iota",
        lambda x: prims.iota(x.shape[0], start=2, step=3, dtype=torch.int64, device=x.device, requires_grad=False),
        randn(4),
    ).dynamic(B),
    case(
        "prims.empty_permuted",
        lambda x: torch.ones_like(
            prims.empty_permuted([x.shape[0], 3], [0, 1], dtype=x.dtype, device=x.device, requires_grad=False)
        ),
        randn(2, 3),
    ).dynamic(B),
]
