"""The formats of quantized weights: the tensors that make up one weight, and its elements in float32."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from t2n_core.errors import InputError

Parts = Mapping[str, torch.Tensor]
"""The tensors of one weight, by the ends of their names."""
Settings = Mapping[str, Any]
"""The quantization of a model's configuration."""
_FLOAT4: Final = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
"""The elements of mxfp4 by their codes: a sign, two bits of exponent, one of mantissa."""
_AWQ_ORDER: Final = (0, 2, 4, 6, 1, 3, 5, 7)
"""The columns of AWQ's 4-bit codes, from the lowest bits of an integer on."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format: a name with the end `mark` belongs to a weight of the same name with the end `weight`."""

    mark: str
    weight: str
    parts: tuple[str, ...]
    """The ends of all names that make up a weight, including names that only some have."""
    read: Callable[[Parts, Settings], torch.Tensor]


def _fp8(parts: Parts, settings: Settings) -> torch.Tensor:
    """Return float8 elements times the factor of their block."""
    weight, factors = parts[""], parts["_scale_inv"].float()
    if not weight.dtype.is_floating_point:
        raise InputError(f"fp8 with elements of {weight.dtype} is not read", hint="float8 is")
    block = settings.get("weight_block_size")
    if factors.numel() == 1 or not block:
        return weight.float() * factors.reshape(())
    grid = [-(-size // part) for size, part in zip(weight.shape[-2:], block, strict=True)]
    if list(factors.shape[-2:]) != grid:
        raise InputError(f"fp8 in blocks of {block} has {grid} factors, and these are {list(factors.shape)}")
    return weight.float() * spread(factors, weight.shape, block)


def _mxfp4(parts: Parts, settings: Settings) -> torch.Tensor:
    """Return the products of experts `[experts, in, out]`, from blocks along `in` with a power of two each."""
    if parts["_blocks"].dim() != 4:
        raise InputError("mxfp4 of a plain layer is not read", hint="that of gpt-oss' experts is")
    codes = unpack_integers(parts["_blocks"], 4).flatten(-2)
    scaled = torch.ldexp(torch.tensor(_FLOAT4)[codes], parts["_scales"].to(torch.int32)[..., None] - 127)
    return scaled.flatten(-2).transpose(-2, -1).contiguous()


def _gptq(parts: Parts, settings: Settings) -> torch.Tensor:
    """Return the matrix of a layer: groups of rows have a factor and a zero for each column."""
    bits, version = settings["bits"], settings.get("checkpoint_format") or "gptq"
    if bits not in (2, 4, 8) or version not in ("gptq", "gptq_v2"):
        raise InputError(f"GPTQ of format {version} with {bits} bits is not read", hint="gptq with 2, 4 and 8 bits is")
    codes = unpack_integers(parts[".qweight"], bits).transpose(1, 2).flatten(0, 1)  # [in, out]
    zeros = unpack_integers(parts[".qzeros"], bits).flatten(-2)
    if version == "gptq":  # zeros are stored less one, as the first format has it
        zeros = (zeros + 1) & ((1 << bits) - 1)
    return _in_groups(codes, zeros, parts[".scales"], parts.get(".g_idx"), settings)


def _awq(parts: Parts, settings: Settings) -> torch.Tensor:
    """Return the matrix of a layer, as GPTQ's, with codes of 4 bits in another order."""
    kind = str(settings.get("version", "gemm")).lower()
    if settings["bits"] != 4 or kind != "gemm" or settings.get("zero_point") is False:
        raise InputError(
            f"AWQ of version {kind} with {settings['bits']} bits is not read", hint="gemm with 4 bits and zeros is"
        )
    codes, zeros = (unpack_integers(parts[name], 4, _AWQ_ORDER).flatten(-2) for name in (".qweight", ".qzeros"))
    return _in_groups(codes, zeros, parts[".scales"], None, settings)


def _in_groups(
    codes: torch.Tensor, zeros: torch.Tensor, scales: torch.Tensor, group: torch.Tensor | None, settings: Settings
) -> torch.Tensor:
    """Return the matrix `[out, in]` of codes `[in, out]`, whose rows belong to groups."""
    if group is None:
        size = settings["group_size"] if settings["group_size"] > 0 else codes.shape[0]
        group = torch.arange(codes.shape[0]) // size
    rows = group.to(torch.int64)
    return ((codes - zeros[rows]) * scales.float()[rows]).T.contiguous()


def _bitsandbytes_4bit(parts: Parts, settings: Settings) -> torch.Tensor:
    """Return a tensor of codes in a table, times the largest absolute value of each block."""
    (state_bytes,) = (part for name, part in parts.items() if name.startswith(".quant_state"))
    state = json.loads(bytes(state_bytes.tolist()))
    largest = parts[".absmax"]
    if ".nested_absmax" in parts:
        outer = parts[".nested_absmax"].repeat_interleave(state["nested_blocksize"])[: largest.numel()]
        largest = parts[".nested_quant_map"][largest.to(torch.int64)] * outer + state["nested_offset"]
    codes = unpack_integers(parts[""].flatten(), 4, (1, 0)).flatten()
    elements = parts[".quant_map"].float()[codes]
    count = torch.Size(state["shape"]).numel()
    factors = largest.float().repeat_interleave(state["blocksize"])[:count]
    return (elements[:count] * factors).reshape(state["shape"])


def _bitsandbytes_8bit(parts: Parts, settings: Settings) -> torch.Tensor:
    """Return a matrix of codes from -127 to 127, times the largest absolute value of each row."""
    return parts[".weight"].float() * (parts[".SCB"].float() / 127)[:, None]


_STATES = tuple(f".quant_state.bitsandbytes__{kind}" for kind in ("nf4", "fp4"))
_OF_FP8 = ("", "_scale_inv")
_OF_GPTQ = (".qweight", ".qzeros", ".scales", ".g_idx")
_OF_4BIT = ("", ".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map", *_STATES)
FORMATS: Final[Mapping[str, tuple[Format, ...]]] = {
    "fp8": (Format("_scale_inv", "", _OF_FP8, _fp8),),
    "mxfp4": (Format("_blocks", "", ("_blocks", "_scales"), _mxfp4),),
    "gptq": (Format(".qweight", ".weight", _OF_GPTQ, _gptq),),
    "awq": (Format(".qweight", ".weight", (".qweight", ".qzeros", ".scales"), _awq),),
    "bitsandbytes": (
        Format(".absmax", "", _OF_4BIT, _bitsandbytes_4bit),
        Format(".SCB", ".weight", (".weight", ".SCB", ".weight_format"), _bitsandbytes_8bit),
    ),
}
"""The formats by the `quant_method` of transformers."""

NEED_A_GPU: Final = frozenset({"eetq", "fbgemm_fp8", "fp_quant", "higgs", "metal", "nvfp4", "spqr", "vptq"})
"""Methods whose checkpoints transformers loads on a GPU only."""

DROPPED: Final = (".activation_scale", ".input_scale")
"""The ends of the names of tensors that only quantized products read, and no weight."""


def unpack_integers(packed: torch.Tensor, bits: int, order: Sequence[int] | None = None) -> torch.Tensor:
    """Return unsigned integers of `bits` bits, along a new last axis, the lowest bits first.

    `order` has the place of each along that axis, if not in the bits' order.
    """
    count = 8 * packed.dtype.itemsize // bits
    wide = packed.to(torch.int64)
    parts = torch.stack([(wide >> (bits * position)) & ((1 << bits) - 1) for position in range(count)], -1)
    if order is None:
        return parts
    places = torch.empty(count, dtype=torch.int64)
    places[torch.tensor(order)] = torch.arange(count)
    return parts[..., places]


def spread(factors: torch.Tensor, shape: Sequence[int], block: Sequence[int]) -> torch.Tensor:
    """Return the factor of each element of a tensor whose last two axes are divided into blocks."""
    rows, columns = shape[-2:]
    tall = factors.repeat_interleave(block[0], -2)[..., :rows, :]
    return tall.repeat_interleave(block[1], -1)[..., :columns]
