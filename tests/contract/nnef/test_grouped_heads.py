"""Heads of queries that share keys and values: no statement repeats these, and the numbers are right at all sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention as attention

from t2n_core import ModelExport, TractNNEF
from t2n_core.nnef.sizes.range_names import NODE
from t2n_core.torch_graph.constraints.declared_axes import SizeFrom
from tests.nets import net_of
from tests.releases import NEWEST

LINES = ("0.19.15", "0.20.22", "0.21.8", "0.21.19", "0.22.4", NEWEST)
GROUP, SHARED, WIDTH = 3, 2, 8
INPUTS = {
    "q": torch.randn(2, GROUP * SHARED, 3, WIDTH),
    "k": torch.randn(2, SHARED, 3, WIDTH),
    "past_k": torch.randn(2, SHARED, 5, WIDTH),
    "past_v": torch.randn(2, SHARED, 5, WIDTH),
}
P, BATCH = SizeFrom("P"), {0: "B"}
AXES = {"q": {**BATCH, 2: "S"}, "k": {**BATCH, 2: "S"}, "past_k": {**BATCH, 2: P}, "past_v": {**BATCH, 2: P}}


class Cached(nn.Module):
    """Attention of new tokens to a past and themselves, which repeats heads in one of the ways that models have."""

    def __init__(self, attend: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.attend = attend

    def forward(self, q: Tensor, k: Tensor, past_k: Tensor, past_v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        keys, values = torch.cat([past_k, k], 2), torch.cat([past_v, k.tanh()], 2)
        rows = past_k.shape[2] + torch.arange(q.shape[2])
        mask = torch.arange(keys.shape[2])[None, :] <= rows[:, None]
        return self.attend(q, keys, values, mask[None, None]), keys, values


def repeated(x: Tensor) -> Tensor:
    batch, heads, length, width = x.shape
    return x[:, :, None].expand(batch, heads, GROUP, length, width).reshape(batch, heads * GROUP, length, width)


def eager(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = torch.matmul(q, repeated(k).transpose(2, 3)) * WIDTH**-0.5
    scores = scores + torch.where(mask, 0.0, torch.finfo(q.dtype).min)
    return torch.matmul(scores.softmax(-1), repeated(v)).transpose(1, 2)


def in_one_stack(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    keys, values = repeated(k).flatten(0, 1), repeated(v).flatten(0, 1)
    scores = torch.bmm(q.flatten(0, 1), keys.transpose(1, 2))
    weights = scores.masked_fill(~mask[0], -torch.inf).softmax(-1)
    return torch.bmm(weights, values).view(q.shape)


WAYS: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]] = {
    "expanded": lambda q, k, v, mask: attention(q, repeated(k), repeated(v), mask),
    "interleaved": lambda q, k, v, mask: attention(
        q, k.repeat_interleave(GROUP, 1), v.repeat_interleave(GROUP, 1), mask
    ),
    "grouped": lambda q, k, v, mask: attention(q, k, v, mask, enable_gqa=True),
    "eager": eager,
    "in one stack": in_one_stack,
    "of one head": lambda q, k, v, mask: attention(
        q, k[:, :1].expand(-1, q.shape[1], -1, -1), v[:, :1].expand(-1, q.shape[1], -1, -1), mask
    ),
}
DOUBLED = ("tile", "tract_core_broadcast", "tract_core_trilu")


@pytest.mark.parametrize("way", WAYS)
def test_keys_and_values_are_not_repeated(way: str, tmp_path: Path) -> None:
    export = ModelExport(Cached(WAYS[way]).eval(), INPUTS, dynamic_axes=AXES)
    failed = []
    for version in LINES:
        result = export.to(TractNNEF(version), tmp_path / f"{version}.nnef.tar")
        operations = [o for o in result.graph.operations if not o.outputs[0].name.startswith(NODE)]
        assert not [o for o in operations if o.name in DOUBLED]
        outcome = result.check_parity("approximate")
        if not outcome.passed:
            failed.append(outcome.describe())
        assert 0 in {sizes["P"] for sizes in outcome.sizes}
    assert not failed


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("eager", "in one stack")])
def test_the_engines_attention_repeats_nothing(way: str, tmp_path: Path) -> None:
    export = ModelExport(Cached(WAYS[way]).eval(), INPUTS, dynamic_axes=AXES)
    for version in ("0.22.4", NEWEST):
        target = TractNNEF(version, reify_sdpa_operator=True)
        result = export.to(target, tmp_path / f"{version}.nnef.tar")
        names = [o.name for o in result.graph.operations]
        assert "tract_transformers_sdpa" in names
        assert not {*DOUBLED, "softmax"} & {*names}
        assert not result.notes
        result.assert_parity("approximate")


@pytest.mark.parametrize("way", ["expanded", "grouped"])
def test_halves_are_not_cast(way: str, tmp_path: Path) -> None:
    """The whole past is cast at every step only where a product of both is slow."""
    inputs = {name: tensor.half() for name, tensor in INPUTS.items()}
    export = ModelExport(Cached(WAYS[way]).eval(), inputs, dynamic_axes=AXES)
    for version in LINES:
        result = export.to(TractNNEF(version), tmp_path / f"{version}.nnef.tar")
        made = result.graph.operations
        casts = [o for o in made if o.name == "tract_core_cast" and o.outputs[0].rank == 4]
        of_past = [o for o in casts if str(o.outputs[0].shape[2]) == "P + S"]
        assert len(of_past) == (0 if version in ("0.21.19", NEWEST) else 2)
        result.assert_parity("approximate")


def test_repeated_weights_of_a_stack(tmp_path: Path) -> None:
    net = net_of(
        lambda self, x: torch.bmm(x, self.weight.expand(x.shape[0], 4, 5)), weight=nn.Parameter(torch.randn(4, 5))
    )
    export = ModelExport(net.eval(), torch.randn(3, 2, 4), dynamic_axes={"x": {0: "B", 1: "T"}})
    for version in LINES:
        result = export.to(TractNNEF(version), tmp_path / f"{version}.nnef.tar")
        operations = [o for o in result.graph.operations if not o.outputs[0].name.startswith(NODE)]
        assert not [o for o in operations if o.name in DOUBLED]
        result.assert_parity("approximate")
