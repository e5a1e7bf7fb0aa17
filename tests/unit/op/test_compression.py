"""Blocks of 4 bits: what goes in comes out near, in both layouts, and the bytes are those of the format."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from t2n_core.errors import WriteError
from t2n_core.nnef.dat import block_header, pieces, stored_size
from t2n_core.nnef.graph import BlockLayout
from t2n_core.op.compression import Q40Weight, dequantised


def unpacked(content: bytes, layout: BlockLayout, shape: tuple[int, int]) -> np.ndarray:
    """What an engine reads, written down from the format's description."""
    blocks = np.frombuffer(content[128:], np.uint8).reshape(-1, 18)
    scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    low, high = blocks[:, 2:] & 15, blocks[:, 2:] >> 4
    both = np.stack([low, high], axis=2).reshape(-1, 32) if layout == 0x2040 else np.concatenate([low, high], axis=1)
    return ((both.astype(np.float32) - 8) * scales).reshape(shape)


@pytest.mark.parametrize("layout", list(BlockLayout))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_blocks_hold_what_is_dequantised(layout: BlockLayout, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(3)
    weight = (torch.randn(37, 96, generator=generator) * torch.logspace(-3, 2, 37)[:, None]).to(dtype)
    weight[5, :32] = 0
    source = Q40Weight(weight, layout)
    content = b"".join(map(bytes, pieces(source)))
    assert len(content) == 128 + stored_size(source) == 128 + 37 * 96 // 32 * 18
    found = unpacked(content, layout, (37, 96))
    np.testing.assert_array_equal(found, dequantised(weight).float().numpy())
    step = weight.float().reshape(-1, 32).abs().amax(1) / 8
    error = np.abs(found - weight.float().numpy()).reshape(-1, 32).max(1)
    assert (error <= 1.01 * step.numpy() + 1e-12).all(), "at most one step, where the largest has the other sign"


def test_the_header_is_that_of_the_format() -> None:
    head = block_header(BlockLayout.HALVES, (3, 64))
    assert head[:4] == b"N\xef\x01\x00"
    assert int.from_bytes(head[4:8], "little") == 3 * 64 // 32 * 18
    assert head[44:52] == b"\xff\xff\xff\xff\x40\x30RT"
    with pytest.raises(WriteError, match="blocks of 32"):
        block_header(BlockLayout.HALVES, (3, 33))


def test_rows_are_packed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = torch.randn(9, 64)
    whole = b"".join(map(bytes, Q40Weight(weight, BlockLayout.HALVES).chunks()))
    monkeypatch.setattr("t2n_core.op.compression._ROWS_AT_A_TIME", 200)
    parts = [bytes(part) for part in Q40Weight(weight, BlockLayout.HALVES).chunks()]
    assert len(parts) == 3
    assert b"".join(parts) == whole
