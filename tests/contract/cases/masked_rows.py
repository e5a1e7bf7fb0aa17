"""Rows and elements that a mask selects: read, computed with, and written back."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.contract.cases import bools, case, randint, randn

B, BT = {0: {0: "B"}}, {0: {0: "B", 1: "T"}, 1: {0: "B", 1: "T"}}
Write = Callable[[Tensor, Tensor], None]


def written(x: Tensor, *writes: Write) -> Tensor:
    y = x * 1
    for write in writes:
        write(y, x[:, 0] > 0)
    return y


def by_elements(y: Tensor, mask: Tensor) -> None:
    y[y > 0] = torch.log1p(y[y > 0])


def by_rows(y: Tensor, mask: Tensor) -> None:
    weight = torch.arange(25.0).reshape(5, 5) / 9
    y[mask] = F.linear(y[mask] * 2 + y.shape[1], weight).softmax(-1).flip(-1)


def in_place(y: Tensor, mask: Tensor) -> None:
    y[mask] *= 0.2
    y[~mask] -= y[~mask].mean(-1, keepdim=True)


def columns(y: Tensor, mask: Tensor) -> None:
    y[mask, 1] = y[mask, 0] - y[mask][:, 2]
    y[mask, 2:4] = y[mask, 3:5].abs().sqrt()


def by_positions(y: Tensor, mask: Tensor) -> None:
    (places,) = torch.where(mask)
    y[places] = y[places] / 3
    y[mask.logical_not().nonzero(as_tuple=True)[0], 0] = 7


def by_another_tensor(y: Tensor, mask: Tensor) -> None:
    other = y.exp()
    y[mask] = other[mask] + other[mask].relu()


def of_integers(y: Tensor, mask: Tensor) -> None:
    y[mask] = y[mask] * 3 - 1


def quotients(y: Tensor, mask: Tensor) -> None:
    y[mask] = y[mask] // y[mask]


WRITES: list[Write] = [by_elements, by_rows, in_place, columns, by_positions, by_another_tensor]


def pairs(x: Tensor, mask: Tensor) -> Tensor:
    y = x.clone()
    y[mask] = y[mask].tanh() + 1
    return y.masked_scatter(mask, 3 * torch.masked_select(x, mask))


def pairs_of_three(x: Tensor, mask: Tensor) -> Tensor:
    y = x.clone()
    y[mask] = y[mask].softmax(-1)
    y[mask, 0] += 2
    return y


def changed_mask(x: Tensor) -> Tensor:
    y = x * 1
    rows = y[y[:, 0] > 0]
    y[:, 0] = y[:, 0].flip(0)
    y[y[:, 0] > 0] = rows * 2
    return y


def mask_changed_in_place(x: Tensor) -> Tensor:
    y, mask = x * 1, x[:, 0] > 0
    rows = y[mask]
    mask.copy_(mask.flip(0))
    y[mask] = rows * 2
    return y


CASES = [
    *(
        case(f"write {write.__name__}", lambda x, write=write: written(x, write), randn(6, 5)).dynamic(B)
        for write in WRITES
    ),
    case("writes in a row", lambda x: written(x, *WRITES), randn(6, 5)).dynamic(B),
    case("write to integers", lambda x: written(x, of_integers), randint(-5, 5, 6, 5)).dynamic(B),
    case("mask of two axes", pairs, randn(3, 5), bools(3, 5)).dynamic(BT),
    case("mask of two of three axes", pairs_of_three, randn(3, 5, 2), bools(3, 5)).dynamic(BT),
    case(
        "sums of selected rows", lambda x: (x[x[:, 0] > 0].sum(0), x[x > 0].sum(), x[x > 9].mean()), randn(6, 5)
    ).dynamic(B),
    case("mean of selected rows", lambda x: x - x[x[:, 0] > -9].mean(0, keepdim=True), randn(6, 5)).dynamic(B),
    *(
        case(name, function, randn(6, 5)).dynamic(B).refused(why)
        for name, function, why in [
            ("number of selected rows", lambda x: x * x[x[:, 0] > 0].shape[0], "`shape` of rows that a mask selects"),
            (
                "selected rows as an output",
                lambda x: x[x[:, 0] > 0] * 2,
                "depends on its data: .* of rows that a mask selects",
            ),
            (
                "running sum of selected rows",
                lambda x: x[x[:, 0] > 0].cumsum(0),
                "`cumsum` of rows that a mask selects",
            ),
            ("selected rows by one another", lambda x: x[x[:, 0] > 0] @ x[x[:, 0] > 0].mT, "depends on its data"),
            (
                "quotient of selected integers",
                lambda x: written(x.long(), quotients),
                "`floordiv` of rows that a mask selects",
            ),
            ("mask of fewer columns", lambda x: torch.masked_select(x, x[:, :1] > 0).sum(), "depends on its data"),
            ("rows of a mask that is written to", mask_changed_in_place, "one that has changed, of rows"),
            ("places of selected rows", lambda x: torch.where(x[x > 0] > 1)[0] + 1, "`where` of rows"),
            ("rows of a mask that has changed", changed_mask, "a write by another mask.* of rows"),
        ]
    ),
]
