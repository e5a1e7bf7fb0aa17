"""Which attention masks are proven to have no fully masked row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F
from torch.nn.functional import scaled_dot_product_attention as attention

from t2n_core import ModelExport, TractNNEF
from t2n_core.torch_graph.constraints.declared_axes import SizeFrom
from tests.releases import NEWEST

TARGET = TractNNEF(NEWEST, check_io=False)
LOW = torch.finfo(torch.float32).min
TABLE = torch.tensor([-torch.inf, -torch.inf, 0.5, -0.25])
Mask = Callable[[int, int, Tensor], Tensor]
"""A mask of the sizes P and S, and a vector of conditions."""


def rows(past: int, length: int) -> Tensor:
    return (torch.arange(length) + past)[:, None]


class Masked(nn.Module):
    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self.mask = mask

    def forward(self, q: Tensor, past: Tensor, kept: Tensor) -> Tensor:
        keys = torch.cat([past, q], 2)
        return attention(q, keys, keys, self.mask(past.shape[2], q.shape[2], kept))


def bounds(mask: Mask, least: int = 0, **axes: Any) -> list[float]:
    inputs = {"q": torch.randn(2, 1, 3, 4), "past": torch.randn(2, 1, 5, 4), "kept": torch.ones(3) > 0}
    dynamic = {"q": {2: "S"}, "kept": {0: "S"}, "past": {2: SizeFrom("P", least)}, **axes}
    graph = ModelExport(Masked(mask).eval(), inputs, dynamic_axes=dynamic).simplified(TARGET)
    return list(graph.open_masks.values())


def is_open(mask: Mask, least: int = 0, **axes: Any) -> bool:
    return bool(bounds(mask, least, **axes))


OPEN: dict[str, Mask] = {
    "causal": lambda p, s, _: torch.arange(p + s)[None] <= rows(p, s),
    "of a batch": lambda p, s, _: (torch.arange(p + s)[None] <= rows(p, s))[None, None].expand(2, 1, s, p + s),
    "a window": lambda p, s, _: (torch.arange(p + s) > rows(p, s) - 6) & (torch.arange(p + s) <= rows(p, s)),
    "from the end": lambda p, s, _: ~(torch.arange(p + s) > rows(p, s)),
    "the past alone, or all": lambda p, s, _: (torch.arange(p + s)[None] < p) | torch.ones(s, p + s, dtype=torch.bool),
    "the first": lambda p, s, _: torch.arange(p + s)[None].expand(s, p + s) < 1,
    "at last": lambda p, s, _: torch.arange(p + s)[None].expand(s, p + s) + 1 == p + s,
    "numbers": lambda p, s, _: torch.zeros(s, p + s).masked_fill(torch.arange(p + s) > rows(p, s), -torch.inf),
    "chosen numbers": lambda p, s, _: torch.where(torch.arange(p + s) <= rows(p, s), 0.0, -torch.inf),
    "low numbers": lambda p, s, k: torch.where(k[:, None], 0.0, torch.finfo(torch.float32).min).expand(s, p + s),
    "a bias of activations": lambda p, s, k: torch.sigmoid(k.float())[:, None] * 2 - torch.ones(s, p + s),
    "a bias or a low number": lambda p, s, k: torch.where(k[:, None], k.float()[:, None] * 2, LOW).expand(s, p + s),
    "a slice": lambda p, s, _: (torch.arange(p + s + 2)[None, 2:] - 2) <= rows(p, s),
}
CLOSED: dict[str, Mask] = {
    "of an input": lambda p, s, mask: (torch.arange(p + s)[None] <= rows(p, s)) & mask[:, None],
    "the past alone": lambda p, s, _: torch.arange(p + s)[None].expand(s, p + s) < p,
    "after the own": lambda p, s, _: torch.arange(p + s)[None] > rows(p, s),
    "an empty window": lambda p, s, _: (torch.arange(p + s) > rows(p, s)) & (torch.arange(p + s) <= rows(p, s)),
    "a window before": lambda p, s, _: torch.arange(p + s)[None] <= rows(p, s) - 2,
    "values of an input": lambda p, s, mask: torch.where(mask[:, None], 0.0, -torch.inf).expand(s, p + s),
    "a bias of an input": lambda p, s, mask: mask.float().log()[:, None].expand(s, p + s) * 0.5,
    "a bias with minus infinity": lambda p, s, mask: (torch.sigmoid(mask.float())[:, None] - torch.inf).expand(
        s, p + s
    ),
    "a sum of two masks": lambda p, s, mask: (LOW * mask.float()[:, None] + LOW * (~mask).float()[:, None]).expand(
        s, p + s
    ),
    "an embedding with minus infinity": lambda p, s, mask: F.embedding(
        mask.long()[:, None].expand(s, p + s), torch.where(mask[0], 0.5, TABLE)[:, None]
    ).squeeze(-1),
    "a table with minus infinity": lambda p, s, mask: (TABLE[mask.long()][:, None] + 1).expand(s, p + s),
    "not all": lambda p, s, _: ~torch.ones(s, p + s, dtype=torch.bool),
}


@pytest.mark.parametrize("name", OPEN)
def test_every_query_has_a_key(name: str) -> None:
    assert is_open(OPEN[name])


def test_every_query_reaches_a_bound() -> None:
    """A window leaves its own 0 where the rest is minus infinity; a condition that is unknown may leave the lowest."""
    assert bounds(OPEN["causal"]) == bounds(OPEN["numbers"]) == bounds(OPEN["chosen numbers"]) == [0.0]
    assert bounds(OPEN["low numbers"]) == [torch.finfo(torch.float32).min]
    assert bounds(lambda p, s, _: torch.full((s, p + s), -7.5)) == [-7.5]


@pytest.mark.parametrize("name", CLOSED)
def test_a_query_may_have_none(name: str) -> None:
    assert not is_open(CLOSED[name])


def test_the_range_of_sizes_decides() -> None:
    def of_the_past(p: int, s: int, _: Tensor) -> Tensor:
        return torch.arange(p + s)[None].expand(s, p + s) < p

    assert not is_open(of_the_past, 0)
    assert is_open(of_the_past, 1)


def test_queries_before_the_keys() -> None:
    """More queries than keys: the first ones have none, where keys belong to the last queries."""

    class Short(nn.Module):
        def forward(self, q: Tensor, k: Tensor) -> Tensor:
            mask = torch.arange(k.shape[2])[None] <= (torch.arange(q.shape[2]) + k.shape[2] - q.shape[2])[:, None]
            return attention(q, k, k, mask)

    inputs = {"q": torch.randn(1, 1, 3, 4), "k": torch.randn(1, 1, 7, 4)}
    free = ModelExport(Short().eval(), inputs, dynamic_axes={"q": {2: "S"}, "k": {2: "K"}})
    assert not free.simplified(TARGET).open_masks
    bounded = {"q": {2: Dim("S", min=1, max=4)}, "k": {2: Dim("K", min=4, max=64)}}
    assert ModelExport(Short().eval(), inputs, dynamic_axes=bounded).simplified(TARGET).open_masks
