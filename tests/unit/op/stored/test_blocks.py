"""Blocks of 4 bits: what goes in comes out near, and the bytes are those of the format."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import WriteError
from t2n_core.nnef.dat import block_header, pieces, stored_size
from t2n_core.op.stored.blocks import BlockWeight, as_blocks, loss
from t2n_core.op.stored.scales import least_error
from tests.releases import NEWEST


def unpacked(content: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """What an engine reads, written down from the format's description."""
    blocks = np.frombuffer(content[128:], np.uint8).reshape(-1, 18)
    scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    low, high = blocks[:, 2:] & 15, blocks[:, 2:] >> 4
    both = np.concatenate([low, high], axis=1)
    return ((both.astype(np.float32) - 8) * scales).reshape(shape)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_blocks_hold_what_is_dequantised(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(3)
    weight = (torch.randn(37, 96, generator=generator) * torch.logspace(-3, 2, 37)[:, None]).to(dtype)
    weight[5, :32] = 0
    stored = as_blocks(weight)
    source = BlockWeight(stored, (37, 96))
    content = b"".join(map(bytes, pieces(source)))
    assert len(content) == 128 + stored_size(source) == 128 + 37 * 96 // 32 * 18
    values = unpacked(content, (37, 96))
    np.testing.assert_array_equal(values, stored.values.float().numpy())
    step = weight.float().reshape(-1, 32).abs().amax(1) / 8
    error = np.abs(values - weight.float().numpy()).reshape(-1, 32).max(1)
    assert (error <= 1.01 * step.numpy() + 1e-12).all(), "at most one step, where the largest has the other sign"


ROWS = {
    "spread": (torch.linspace(-3, 3, 192).reshape(2, 96), ""),
    "zeros": (torch.zeros(2, 64), ""),
    "small": (torch.full((2, 64), 1e-4), ""),
    "the largest": (torch.full((2, 64), 65504.0 * 8), ""),
    "one large number": (torch.cat([torch.tensor([-6e5]), torch.ones(127)]).reshape(2, 64), "1 value beyond 524032"),
    "a small block": (torch.cat([torch.full((32,), 1e-7), torch.ones(96)]).reshape(2, 64), ""),
    "a small row": (torch.stack([torch.ones(64), torch.full((64,), 1e-6)]), "1 of 2 rows too small for scales"),
    "vanishing": (torch.full((2, 64), 1e-30), "2 of 2 rows too small for scales"),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_scales_of_float16_cannot_stand_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    weight, reason = ROWS[name]
    monkeypatch.setattr("t2n_core.op.stored.chunks.AT_A_TIME", 64)
    assert loss(weight) == reason


def test_a_weight_that_the_blocks_cannot_hold_stays_as_it_is() -> None:
    model = nn.Sequential(nn.Linear(64, 8), nn.Linear(8, 64), nn.Linear(64, 4))
    model[0].weight.data[0, 0] = 6e5
    model[2].weight.data[1] *= 1e-6
    target = TractNNEF(NEWEST, weights="q4_0", check_io=False)
    notes = ModelExport(model.eval(), torch.randn(2, 64)).lower(target).declined["weights"]
    assert "`0.weight` stays float32: 1 value beyond 524032" in notes
    assert "`2.weight` stays float32: 1 of 4 rows too small for scales" in notes


def test_the_header_is_that_of_the_format() -> None:
    head = block_header((3, 64))
    assert head[:4] == b"N\xef\x01\x00"
    assert int.from_bytes(head[4:8], "little") == 3 * 64 // 32 * 18
    assert head[44:52] == b"\xff\xff\xff\xff\x40\x30RT"
    with pytest.raises(WriteError, match="blocks of 32"):
        block_header((3, 33))


def test_rows_are_packed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = torch.randn(9, 64)
    stored = as_blocks(weight)
    source = BlockWeight(stored, (9, 64))
    content = b"".join(map(bytes, source.chunks()))
    monkeypatch.setattr("t2n_core.op.stored.chunks.AT_A_TIME", 200)
    parts = [bytes(part) for part in source.chunks()]
    assert len(parts) == 3
    assert b"".join(parts) == content
    assert torch.equal(as_blocks(weight).values, stored.values)


def test_a_kernel_is_in_blocks_along_its_window() -> None:
    weight = torch.randn(5, 8, 2, 2)
    stored = as_blocks(weight, least_error)
    source = BlockWeight(stored, (5, 8, 2, 2))
    content = b"".join(map(bytes, pieces(source)))
    np.testing.assert_array_equal(unpacked(content, (5, 8, 2, 2)), stored.values.numpy())
    assert ((stored.values - weight) ** 2).sum() < ((as_blocks(weight).values - weight) ** 2).sum()
