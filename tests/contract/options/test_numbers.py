"""Options that change which numbers the engine computes, on real engines."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import TractNNEF
from tests.contract.options.exports import Attention, every_line, exported, operators
from tests.releases import NEWEST


@every_line
@pytest.mark.parametrize("kind", ["conv", "linear", "lstm"])
def test_force_linear_accumulation_in_f32(kind: str, version: str, tmp_path: Path) -> None:
    """A long sum whose terms nearly cancel: float16 loses it, float32 keeps it."""
    if kind == "lstm":
        model, x = nn.LSTM(64, 5, bidirectional=True), torch.randn(7, 2, 64)
    elif kind == "conv":
        model, x = nn.Conv1d(200, 4, 5, padding=2), torch.randn(2, 200, 9)
    else:
        model, x = nn.Linear(1000, 5), torch.randn(3, 1000)
    target = TractNNEF(version, force_linear_accumulation_in_f32=True)
    exported(model.half(), x.half(), target, tmp_path).assert_parity("approximate")


@every_line
@pytest.mark.parametrize("rows", [1, 3])
def test_long_sums_of_float16(rows: int, version: str, tmp_path: Path) -> None:
    """Are in float32 without being asked, of one row too; engines before 0.21.13 would take float16."""
    model, x = nn.Linear(1000, 5).half(), torch.randn(rows, 1000).half()
    exported(model, x, TractNNEF(version), tmp_path).assert_parity("approximate")


def test_force_linear_accumulation_in_f32_is_what_helps(tmp_path: Path) -> None:
    model, x = nn.Conv1d(200, 4, 5, padding=2).half(), torch.randn(2, 200, 9).half()
    assert not exported(model, x, TractNNEF(NEWEST), tmp_path).check_parity("approximate").passed


@every_line
def test_a_linear_layer_that_is_summed_in_float32_is_rounded_once(version: str, tmp_path: Path) -> None:
    """The bias nearly cancels the products: those that were rounded before lose the digits that are left."""
    model, x = nn.Linear(1000, 64).half(), 10 * torch.randn(1, 1000).half()
    with torch.no_grad():
        products = (x.double() @ model.weight.double().T)[0]
        model.bias.copy_(-products + 0.01 * torch.randn(64))
    target = TractNNEF(version, force_linear_accumulation_in_f32=True)
    exported(model, x, target, tmp_path).assert_parity("float16")


@every_line
def test_force_norm_in_f32(version: str, tmp_path: Path) -> None:
    """A mean far from zero and a small variance: scale and shift cancel, which float16 do not survive."""
    model = nn.BatchNorm1d(6)
    nn.init.uniform_(model.running_var, 0.01, 0.02)  # type: ignore[arg-type]
    nn.init.uniform_(model.running_mean, 9.0, 11.0)  # type: ignore[arg-type]
    x = (torch.randn(4, 6, 5) * 0.1 + model.running_mean[:, None]).half()  # type: ignore[index]
    target = TractNNEF(version, force_norm_in_f32=True)
    exported(model.half(), x, target, tmp_path).assert_parity("approximate")
    assert not exported(model.half(), x, TractNNEF(version), tmp_path).check_parity("approximate").passed


NORMS = {"layer": nn.LayerNorm(8), "group": nn.GroupNorm(2, 6), "instance": nn.InstanceNorm1d(6, affine=True)}


@every_line
@pytest.mark.parametrize("name", list(NORMS))
def test_norms_of_float16_are_rounded_once(name: str, version: str, tmp_path: Path) -> None:
    """Weight and bias cancel for some numbers: what was rounded before is many units off there."""
    model = copy.deepcopy(NORMS[name])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    exported(model.half(), torch.randn(4, 6, 8).half(), TractNNEF(version), tmp_path).assert_parity("close")


def heads(*counts: int, length: int = 5) -> tuple[Tensor, ...]:
    return tuple(torch.randn(2, count, length, 4) for count in counts)


LONG = heads(3, 3, 3, length=80)
LOWEST = torch.finfo(torch.float32).min
WINDOW = torch.ones(80, 80, dtype=torch.bool).tril().triu(-7)
"""The engine takes keys by the 32: some queries of its blocks see none of the first keys, others do."""

CALLS = {
    "plain": (Attention(), heads(3, 3, 3)),
    "causal": (Attention(is_causal=True, scale=0.3), heads(3, 3, 3)),
    "mask": (Attention(attn_mask=torch.linspace(-2, 2, 25).reshape(5, 5)), heads(3, 3, 3)),
    "bool-mask": (Attention(attn_mask=torch.ones(5, 5, dtype=torch.bool).tril()), heads(3, 3, 3)),
    "grouped": (Attention(enable_gqa=True), heads(4, 2, 2)),
    "rank-3": (Attention(), tuple(torch.randn(2, 5, 4) for _ in range(3))),
    "window-mask": (Attention(attn_mask=WINDOW), LONG),
    "infinite-mask": (Attention(attn_mask=torch.zeros(80, 80).masked_fill(~WINDOW, -torch.inf)), LONG),
    "lowest-mask": (Attention(attn_mask=torch.zeros(80, 80).masked_fill(~WINDOW, LOWEST)), LONG),
}
FORMULAS = {
    "empty-row": (Attention(attn_mask=torch.ones(5, 5, dtype=torch.bool).tril(-1)), heads(3, 3, 3)),
    "oblong-causal": (Attention(is_causal=True), (*heads(3, length=4), *heads(3, 3))),
    "rank-2": (Attention(), tuple(torch.randn(5, 4) for _ in range(3))),
    "broadcast": (Attention(), (torch.randn(2, 3, 5, 4), *(torch.randn(1, 3, 5, 4) for _ in range(2)))),
    "double": (Attention(), tuple(x.double() for x in heads(3, 3, 3))),
    "row-of-lowest": (Attention(attn_mask=torch.zeros(80, 80).index_fill(0, torch.arange(40), LOWEST)), LONG),
    "far-rows": (Attention(attn_mask=torch.where(WINDOW, -1e5, -1.0003e5)), LONG),
}


@every_line
@pytest.mark.parametrize("call", list(CALLS))
def test_reify_sdpa_operator(call: str, version: str, tmp_path: Path) -> None:
    """The engine's own operator where the version has it, at sizes that were not traced."""
    model, args = CALLS[call]
    names = ("query", "key", "value")
    dynamic = {n: {0: "B"} if call.endswith("mask") else {0: "B", -2: "T"} for n in names}
    target = TractNNEF(version, reify_sdpa_operator=True, dynamic_axes=dynamic)
    result = exported(model, args, target, tmp_path)
    assert ("tract_transformers_sdpa" in operators(result)) == (version >= "0.22")
    result.assert_parity("approximate")


@pytest.mark.parametrize("version", ["0.22.4", NEWEST])
@pytest.mark.parametrize("call", list(FORMULAS))
def test_reify_sdpa_operator_only_where_it_is_right(call: str, version: str, tmp_path: Path) -> None:
    model, args = FORMULAS[call]
    result = exported(model, args, TractNNEF(version, reify_sdpa_operator=True), tmp_path)
    assert "tract_transformers_sdpa" not in operators(result)
    result.assert_parity("approximate")


class Windowed(nn.Module):
    """Attention to the last eight keys; `lowest` is the bias of the others."""

    def __init__(self, lowest: float) -> None:
        super().__init__()
        self.lowest = lowest

    def forward(self, x: Tensor, kept: Tensor) -> Tensor:
        at = torch.arange(x.shape[2])
        distance = at[:, None] - at
        seen = (distance >= 0) & (distance < 8)
        mask = torch.where(seen, 0.0, self.lowest)
        if self.lowest > -torch.inf:
            mask = mask.masked_fill(~kept[:, None], self.lowest)  # a query that is left out sees all keys alike
        return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


@pytest.mark.parametrize("version", ["0.22.4", NEWEST])
@pytest.mark.parametrize("lowest", [-torch.inf, LOWEST])
def test_masks_that_are_computed(lowest: float, version: str, tmp_path: Path) -> None:
    """The operator takes a window for more than 32 keys; rows that may be lowest throughout are the formula's."""
    target = TractNNEF(version, reify_sdpa_operator=True, dynamic_axes={"x": {2: "T"}, "kept": {0: "T"}})
    args = (torch.randn(1, 2, 80, 4), torch.arange(80) > 40)
    result = exported(Windowed(lowest), args, target, tmp_path)
    assert ("tract_transformers_sdpa" in operators(result)) == (lowest == -torch.inf)
    result.assert_parity("approximate")


@pytest.mark.parametrize("version", ["0.22.4", NEWEST])
def test_force_attention_inner_in_f32(version: str, tmp_path: Path) -> None:
    args = tuple(x.half() * 3 for x in heads(4, 2, 2, length=40))
    model = Attention(enable_gqa=True)
    for options, holds in (({"force_attention_inner_in_f32": True}, True), ({}, version != "0.22.4")):
        target = TractNNEF(version, reify_sdpa_operator=True, **options)  # type: ignore[arg-type]
        result = exported(model, args, target, tmp_path)
        assert "tract_transformers_sdpa" in operators(result)
        assert result.check_parity("approximate").passed == holds


def test_layers_are_reified(tmp_path: Path) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
    target = TractNNEF(NEWEST, reify_sdpa_operator=True, dynamic_axes={"src": {1: "T"}})
    result = exported(layer, torch.randn(2, 5, 8), target, tmp_path)
    assert "tract_transformers_sdpa" in operators(result)
    result.assert_parity("approximate")


@every_line
@pytest.mark.parametrize("rank", [3, 4, 5])
def test_upsample_with_debox(rank: int, version: str, tmp_path: Path) -> None:
    factors = (2, 3, 1)[: rank - 2]
    x = torch.randn(2, 3, *(4, 5, 2)[: rank - 2])
    target = TractNNEF(version, upsample_with_debox=True, dynamic_axes={"input": {0: "B", 2: "T"}})
    result = exported(nn.Upsample(scale_factor=factors), x, target, tmp_path)
    assert ("debox" in operators(result)) == (version >= "0.23")
    result.assert_parity("exact")
