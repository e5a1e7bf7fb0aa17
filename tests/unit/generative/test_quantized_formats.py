"""Quantized weights are read by the definition of their format, here written once more, element by element."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from t2n_core.errors import InputError
from t2n_core.generative.quantized.formats import FORMATS

RANDOM = np.random.default_rng(0)
NF4 = [math.erf(index / 8 - 1) for index in range(16)]
"""Any increasing table will do: a checkpoint has its own."""


def packed(codes: Any, bits: int, axis: int, order: Any = None) -> torch.Tensor:
    """Return codes packed into int32 along an axis; `order` has the code that comes at each place, from the lowest."""
    count = 32 // bits
    moved = np.moveaxis(np.asarray(codes, np.int64), axis, -1)
    words = np.zeros((*moved.shape[:-1], moved.shape[-1] // count), np.int64)
    for position in range(count):
        words |= moved[..., (order or range(count))[position] :: count] << (bits * position)
    return torch.from_numpy(np.moveaxis(words, -1, axis).astype(np.uint32).view(np.int32).copy())


def read(method: str, parts: dict[str, torch.Tensor], place: int = 0, **settings: Any) -> Any:
    return FORMATS[method][place].read(parts, settings).numpy()


@pytest.mark.parametrize("shape", [(8, 12), (7, 10)], ids=["whole", "partial"])
def test_fp8_has_a_factor_for_each_block(shape: tuple[int, int]) -> None:
    weight = torch.from_numpy(RANDOM.normal(size=shape).astype(np.float32)).to(torch.float8_e4m3fn)
    factors = RANDOM.random((2, 3)).astype(np.float32)
    values = read("fp8", {"": weight, "_scale_inv": torch.from_numpy(factors)}, weight_block_size=[4, 4])
    for row, column in np.ndindex(*shape):
        assert values[row, column] == np.float32(float(weight[row, column])) * factors[row // 4, column // 4]
    per_tensor = read("fp8", {"": weight, "_scale_inv": torch.tensor(0.25)}, weight_block_size=None)
    np.testing.assert_array_equal(per_tensor, weight.float().numpy() / 4)


def test_mxfp4_has_a_power_of_two_for_32_elements() -> None:
    blocks = RANDOM.integers(0, 256, (2, 3, 2, 16), np.uint8)
    scales = RANDOM.integers(120, 132, (2, 3, 2), np.uint8)
    values = read("mxfp4", {"_blocks": torch.from_numpy(blocks), "_scales": torch.from_numpy(scales)})
    assert values.shape == (2, 64, 3), "[experts, in, out]"
    for expert, row, group, byte in np.ndindex(*blocks.shape):
        for nibble in range(2):
            code = int(blocks[expert, row, group, byte]) >> (4 * nibble) & 15
            exponent, fraction = code >> 1 & 3, (code & 1) / 2
            size = fraction if not exponent else (1 + fraction) * 2 ** (exponent - 1)
            expected = (-size if code & 8 else size) * 2.0 ** (int(scales[expert, row, group]) - 127)
            assert values[expert, 32 * group + 2 * byte + nibble, row] == expected


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("version", ["gptq", "gptq_v2"])
def test_gptq_has_groups_of_rows(bits: int, version: str) -> None:
    height, width, groups = 48, 32, 3
    codes = RANDOM.integers(0, 1 << bits, (height, width))
    zeros = RANDOM.integers(1, 1 << bits, (groups, width))
    scales = RANDOM.random((groups, width)).astype(np.float16)
    group = RANDOM.permutation(np.arange(height) % groups).astype(np.int32)
    stored = zeros - 1 if version == "gptq" else zeros
    parts = {
        ".qweight": packed(codes, bits, 0),
        ".qzeros": packed(stored, bits, 1),
        ".scales": torch.from_numpy(scales),
        ".g_idx": torch.from_numpy(group),
    }
    values = read("gptq", parts, bits=bits, group_size=16, checkpoint_format=version)
    expected = (codes - zeros[group]) * scales.astype(np.float32)[group]
    np.testing.assert_array_equal(values, expected.T.astype(np.float32))
    del parts[".g_idx"]
    ordered = read("gptq", parts, bits=bits, group_size=16, checkpoint_format=version)
    assert ordered[5, 20] == np.float32((codes[20, 5] - zeros[1, 5]) * np.float32(scales[1, 5]))


def test_awq_packs_columns_in_another_order() -> None:
    codes, zeros = RANDOM.integers(0, 16, (24, 16)), RANDOM.integers(0, 16, (3, 16))
    scales, order = RANDOM.random((3, 16)).astype(np.float16), (0, 2, 4, 6, 1, 3, 5, 7)
    parts = {".qweight": packed(codes, 4, 1, order), ".qzeros": packed(zeros, 4, 1, order)}
    values = read("awq", {**parts, ".scales": torch.from_numpy(scales)}, bits=4, group_size=8, version="gemm")
    group = np.arange(24) // 8
    expected = (codes - zeros[group]) * scales.astype(np.float32)[group]
    np.testing.assert_array_equal(values, expected.T.astype(np.float32))


@pytest.mark.parametrize("nested", [False, True])
def test_bitsandbytes_has_a_table_and_blocks(nested: bool) -> None:
    shape, size = (6, 11), 16
    codes = RANDOM.integers(0, 16, shape)
    flat = codes.ravel()
    largest: Any = RANDOM.random(5).astype(np.float32)
    state: dict[str, Any] = {"quant_type": "nf4", "blocksize": size, "dtype": "float32", "shape": list(shape)}
    parts: dict[str, Any] = {"": (flat[::2] << 4 | flat[1::2]).astype(np.uint8)[:, None], ".absmax": largest}
    parts[".quant_map"] = np.array(NF4, np.float32)
    if nested:
        places, outer = RANDOM.integers(0, 256, 5).astype(np.uint8), RANDOM.random(3).astype(np.float32)
        table = np.linspace(-1, 1, 256, dtype=np.float32)
        parts |= {".absmax": places, ".nested_absmax": outer, ".nested_quant_map": table}
        state |= {"nested_blocksize": 2, "nested_offset": 0.5}
        largest = table[places] * outer[np.arange(5) // 2] + np.float32(0.5)
    parts[".quant_state.bitsandbytes__nf4"] = np.frombuffer(json.dumps(state).encode(), np.uint8).copy()
    values = read("bitsandbytes", {name: torch.from_numpy(part) for name, part in parts.items()})
    expected = np.array(NF4, np.float32)[flat] * largest[np.arange(66) // size]
    np.testing.assert_allclose(values, expected.reshape(shape), rtol=1e-6)


def test_bitsandbytes_of_8_bits_has_a_factor_for_each_row() -> None:
    weight, rows = RANDOM.integers(-127, 128, (5, 7), np.int8), RANDOM.random(5).astype(np.float32)
    values = read("bitsandbytes", {".weight": torch.from_numpy(weight), ".SCB": torch.from_numpy(rows)}, 1)
    np.testing.assert_allclose(values, weight * (rows[:, None] / 127), rtol=1e-6)


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("gptq", {"bits": 3}, "GPTQ of format gptq with 3 bits is not read"),
        ("gptq", {"bits": 4, "checkpoint_format": "marlin"}, "GPTQ of format marlin with 4 bits is not read"),
        ("awq", {"bits": 4, "version": "gemv"}, "AWQ of version gemv with 4 bits is not read"),
        ("awq", {"bits": 4, "zero_point": False}, "AWQ of version gemm with 4 bits is not read"),
        ("fp8", {"weight_block_size": [4, 4]}, "fp8 with elements of torch.int8 is not read"),
        ("mxfp4", {}, "mxfp4 of a plain layer is not read"),
    ],
)
def test_other_layouts_are_refused(method: str, settings: dict[str, Any], message: str) -> None:
    codes = torch.ones(8, 8, dtype=torch.int8)
    with pytest.raises(InputError, match=message):
        read(method, {"": codes, "_scale_inv": torch.ones(2, 2), "_blocks": codes}, **settings)


def test_factors_of_other_blocks_are_refused() -> None:
    weight = torch.ones(8, 8).to(torch.float8_e4m3fn)
    with pytest.raises(InputError, match=r"has \[2, 2\] factors, and these are \[8, 2\]"):
        read("fp8", {"": weight, "_scale_inv": torch.ones(8, 2)}, weight_block_size=[4, 4])
