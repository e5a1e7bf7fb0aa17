"""Joins, pieces, slices."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tests.contract.cases import bools, case, randint, randn, weight

aten, prims = torch.ops.aten, torch.ops.prims
BT = {0: {0: "B", 1: "T"}}
STACKS = "stack hstack vstack dstack column_stack".split()


def _rewritten(x: torch.Tensor) -> torch.Tensor:
    """Its first four steps halved, and then shapes that are written with the whole size."""
    y = torch.slice_scatter(x, x[:, :4] * 0.5, 1, 0, 4)
    return torch.einsum("htc,hsc->hts", y, y.tanh()) + F.group_norm(y.mT, 1).sum()


def _padded(x: torch.Tensor) -> torch.Tensor:
    return F.pad(x, (0, 0, 0, max(0, 4 - x.shape[1]))).flatten(1).tanh()


def write(x: torch.Tensor, along: slice, value: Any) -> torch.Tensor:
    """Return the tensor with a value in a slice of its second axis."""
    x = x.clone()
    x[:, along] = value
    return x


CASES = [
    case("first steps written anew", _rewritten, randn(3, 2, 5)).dynamic({0: {1: "T"}}),
    case(
        "padded to so many channels",
        lambda x: F.conv1d(F.pad(x, (0, 0, 0, 4 - x.shape[1]))[:, :4], torch.ones(4, 1, 3), groups=4),
        randn(2, 3, 5),
    ).dynamic({0: {1: "T"}}),
    case("padded to a least size and flattened", _padded, randn(2, 3, 5)).dynamic({0: {1: "T"}}),
    case(
        "halves swapped, in front of a convolution",
        lambda x: F.conv1d(torch.cat(x.chunk(2, 1)[::-1], 1).transpose(0, 1), torch.ones(4, 3, 2), stride=2)[-1],
        randn(3, 5, 6),
    ).dynamic({0: {1: "T"}}),
    case("cat", torch.cat, [randn(2, 3), randn(2, 5), randn(2, 1)], 1),
    case("cat promotes", torch.cat, [randn(2, 3), randint(-9, 9, 2, 5)], -1),
    case("cat of integers", torch.cat, [randint(-9, 9, 2), randint(-9, 9, 3)]),
    case("cat of bool", torch.cat, [bools(2), bools(3)]),
    case("cat of one", torch.cat, [randn(2, 3)], 1),
    case("cat dynamic", lambda x, y: torch.cat([x, y, x], 1), randn(2, 3), randn(2, 5)).dynamic(
        {0: {1: "T"}, 1: {1: "S"}}
    ),
    case("cat of nothing and something", lambda x: torch.cat([x[:, :0], x, x[:, 2:2]], 1), randn(2, 3)),
    case("slice without elements", lambda x: (x[:, 2:2], x * 2), randn(2, 3)),
    case("slice without elements, dynamic", lambda x: torch.cat([x * 2, x[..., 3:]], -1), randn(2, 5, 3)).dynamic(
        {0: {0: "B", 1: "T"}}
    ),
    case("concat", torch.concat, [randn(2, 3), randn(2, 5)], 1),
    case("concatenate", torch.concatenate, [randn(2, 3), randn(2, 5)], 1),
    case("prims.cat", lambda x, y: prims.cat([x, y], 1), randn(2, 3), randn(2, 5)),
    *(case(name, getattr(torch, name), [randn(2, 3), randn(2, 3)]) for name in STACKS),
    case("stack last", torch.stack, [randn(2, 3), randn(2, 3)], -1),
    case("stack promotes", lambda x, y: torch.stack([x, y.to(x.dtype)], 1), randn(2, 3), randint(-9, 9, 2, 3)),
    case("atleast", lambda x: (torch.atleast_2d(x), torch.atleast_3d(x)), randn(3)),
    case("split", torch.split, randn(7, 3), 3),
    case("split sizes", torch.split, randn(2, 7), (1, 4, 2), 1),
    case("split_with_sizes", torch.split_with_sizes, randn(2, 7), (1, 4, 2), 1),
    case("split_copy", aten.split_copy.Tensor, randn(7, 3), 3),
    case("split_with_sizes_copy", aten.split_with_sizes_copy, randn(7, 3), [3, 4]),
    case("chunk", torch.chunk, randn(7, 3), 3),
    case("chunk of features", lambda x: x.chunk(2, -1)[1], randn(2, 3, 6)).dynamic(BT),
    case("chunk of an even dynamic axis", lambda x: torch.cat([x, x], 1).chunk(2, 1)[1], randn(2, 3)).dynamic(BT),
    case("unsafe_chunk", torch.unsafe_chunk, randn(7, 3), 3),
    case("unsafe_split", torch.unsafe_split, randn(7, 3), 3),
    case("unsafe_split_with_sizes", torch.unsafe_split_with_sizes, randn(7, 3), (3, 4)),
    case("tensor_split", torch.tensor_split, randn(7, 3), 3),
    case("tensor_split, dynamic", lambda x: x.tensor_split(3, 0)[::-1], randn(7, 3)).dynamic({0: {0: "T"}}),
    case("tensor_split at", torch.tensor_split, randn(7, 3), (1, 3)),
    case("hsplit at, dynamic", lambda x: x.hsplit([1, 4]), randn(3, 7)).dynamic({0: {1: "T"}}),
    case("hsplit of a vector, dynamic", lambda x: torch.hsplit(x, (2, 3)), randn(7)).dynamic({0: {0: "T"}}),
    case("dsplit at, dynamic", lambda x: torch.dsplit(x, (1, 2)), randn(3, 4, 5)).dynamic({0: {0: "B", 2: "T"}}),
    case("hsplit", torch.hsplit, randn(2, 6), 3),
    case("unbind", torch.unbind, randn(3, 4)),
    case("unbind of axis 1", torch.unbind, randn(3, 4), 1),
    case("unbind_copy", aten.unbind_copy, randn(3, 4)),
    case("slice", lambda x: x[1:3, :-1], randn(5, 4)),
    case("slice steps", lambda x: x[1::2, ::3], randn(5, 7)),
    case("slice beyond", lambda x: x[2:99, -99:2], randn(5, 4)),
    case("slice of integers", lambda x: x[1:, ::2], randint(-9, 9, 5, 4)),
    case("slice dynamic", lambda x: x[:, 1:], randn(2, 5, 3)).dynamic(BT),
    case("slice dynamic end", lambda x: x[:, :-1], randn(2, 5, 3)).dynamic(BT),
    case("slice dynamic both", lambda x: (x[:, 1:-1] - x[:, :-2]).amax(1), randn(2, 5, 3)).dynamic(BT),
    case("slice dynamic step", lambda x: x[:, ::2], randn(2, 5, 3)).dynamic({0: {0: "B"}}),
    case("slice a dynamic step", lambda x: x[:, 1::2], randn(2, 6, 3)).dynamic(BT),
    case(
        "slice of a table",
        lambda x, t: (x + t[:, : x.shape[1]]).unflatten(2, (2, 3)),
        randn(2, 5, 6),
        weight(randn(1, 19, 6)),
    ).dynamic(BT),
    case(
        "slice of a table, to its end",
        lambda x, t: (x + t[:, 19 - x.shape[1] :]).unflatten(2, (2, 3)),
        randn(2, 5, 6),
        weight(randn(1, 19, 6)),
    ).dynamic(BT),
    case(
        "slice of a table, its middle",
        lambda x, t: (x + t[:, 9 : 9 + x.shape[1]]).unflatten(2, (2, 3)),
        randn(2, 5, 6),
        weight(randn(1, 29, 6)),
    ).dynamic(BT),
    case("slice_copy", aten.slice_copy.Tensor, randn(5, 4), 0, 1, 4, 2),
    case("last step", lambda x: x[:, -1], randn(2, 5, 3)).dynamic(BT),
    case("first step", lambda x: x[:, 0], randn(2, 5, 3)).dynamic(BT),
    case("third step, and linear", lambda x: x[:, 2] @ x[0, :3].T, randn(2, 5, 3)).dynamic(BT),
    case("without the ends", lambda x: x[:, 1:-1], randn(2, 5, 3)).dynamic(BT),
    case("select", torch.select, randn(2, 5, 3), 1, -2),
    case("select_copy", aten.select_copy.int, randn(2, 5, 3), 1, -2),
    case("None and ...", lambda x: x[None, ..., 1, None], randn(2, 5, 3)),
    case("narrow", torch.narrow, randn(2, 5), 1, 1, 3),
    case("narrow negative", torch.narrow, randn(2, 5), 1, -3, 2),
    case("narrow_copy", torch.narrow_copy, randn(2, 5), 1, 1, 3),
    case("narrow_copy of nothing", lambda x: torch.cat([torch.narrow_copy(x, 1, 1, 0), x], 1), randn(2, 5)),
    case("slice_scatter", torch.slice_scatter, randn(5, 4), randn(2, 4), 0, 1, 3),
    case("slice_scatter to the end", torch.slice_scatter, randn(5, 4), randn(5, 2), 1, -2),
    case("slice_scatter step", torch.slice_scatter, randn(6, 4), randn(3, 4), 0, 1, 6, 2),
    *(
        case(f"slice_scatter {name} over a dynamic axis", function, randn(2, 7, 3)).dynamic({0: {1: "T"}})
        for name, function in {
            "every second": lambda x: write(x, slice(None, None, 2), 0),
            "every third from 1": lambda x: write(x, slice(1, None, 3), -2.5),
            "every second to the last": lambda x: write(x, slice(0, -1, 2), -2.5),
            "every second in the second half": lambda x: write(x, slice(x.shape[1] // 2, None, 2), 7),
            "every fifth of another": lambda x: write(x, slice(2, None, 5), -9 * x[:, 2::5]),
            "every second of a row": lambda x: write(x, slice(None, None, 2), x[:, :1] - 9),
            "every second of a bounded range": lambda x: write(
                torch.cat([x, x[:, :1], -x, x[:, :1]], 1), slice(0, 4, 2), 3
            ),
            "every second, twice": lambda x: write(write(x, slice(None, None, 2), 1), slice(1, None, 2), -1),
            "rotated pairs": lambda x: write(torch.cat([x, x], 1), slice(1, None, 2), -torch.cat([x, x], 1)[:, ::2]),
        }.items()
    ),
    case(
        "slice_scatter every second of integers", lambda x: write(x, slice(None, None, 2), 4), randint(-9, 9, 2, 7)
    ).dynamic({0: {1: "T"}}),
    case("slice_scatter all", torch.slice_scatter, randn(6, 4), randn(6, 4)),
    case("select_scatter", torch.select_scatter, randn(5, 4), randn(5), 1, -1),
    case("diagonal_scatter", torch.diagonal_scatter, randn(5, 4), randn(4)),
    *(
        case(
            f"diagonal_scatter of dynamic axes, {k}",
            lambda x, k=k: x.diagonal_scatter(x.exp().diagonal(k) + 3, k),
            randn(5, 4),
        ).dynamic({0: {0: "B", 1: "T"}})
        for k in (0, 1)
    ),
    case("diagonal_scatter off", torch.diagonal_scatter, randn(5, 4, 2), randn(5, 1), 1, 1, 2),
    case("write a slice", lambda x: _write(x), randn(3, 5)),
    case("write a slice, dynamic", lambda x: _write(x), randn(3, 5)).dynamic({0: {0: "B"}}),
]


def _write(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros_like(x)
    y[:, 1:3] = x[:, :2]
    y[:, -1] += 1
    return y
