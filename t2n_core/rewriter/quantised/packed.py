"""Packed weights of torch.ao, unpacked to int8 integers, scales and a bias, as buffers of their module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.custom_ops.integer_arithmetic import dequantised, dequantised_along


@dataclass(frozen=True, slots=True, eq=False)
class Buffers:
    """Access to the buffers of a module, which are other tensors during capture."""

    owner: torch.nn.Module
    stem: str

    def get(self, word: str) -> Tensor | None:
        return self.owner._buffers.get(self.stem + word)


@dataclass(frozen=True, slots=True, eq=False)
class PackedWeight:
    """The unpacked parameters of a linear layer, a convolution or an embedding."""

    buffers: Buffers
    zeros: tuple[float, ...] = ()
    """Zero points of the weight: empty if they are all 0, otherwise one, or one per output channel."""
    stride: Sequence[int] = ()
    padding: Sequence[int] = ()
    dilation: Sequence[int] = ()
    output_padding: Sequence[int] = ()
    groups: int = 1
    transposed: bool = False

    @property
    def bias(self) -> Tensor | None:
        """Return the bias [out], float32."""
        return self.buffers.get("bias")

    @property
    def scales(self) -> Tensor:
        """Return the scale, the scales [out], or an embedding's scales [rows, 1], float32."""
        return self._require("scales")

    @property
    def lowest(self) -> Tensor:
        """Return the values [rows, 1] of the integer 0 in an embedding's rows."""
        return self._require("lowest")

    @property
    def stored(self) -> Tensor:
        """Return the integers as they are stored: int8 [out, in / groups, …], or uint8 [rows, columns]."""
        return self._require("weight")

    def centred(self) -> Tensor:
        """Return the integers minus their zero points, float32; the archive keeps them as they are stored."""
        if len(set(self.zeros)) <= 1:
            return dequantised(self.stored, 1.0, int(self.zeros[0]) if self.zeros else 0)
        zeros = self._require("zeros")
        return dequantised_along(self.stored, torch.ones_like(zeros), zeros, int(self.transposed))

    def _require(self, word: str) -> Tensor:
        buffer = self.buffers.get(word)
        assert buffer is not None
        return buffer


@dataclass(frozen=True, slots=True, eq=False)
class CellWeights:
    """The unpacked parameters of one direction of one layer of a dynamic LSTM or GRU."""

    w_ih: PackedWeight
    w_hh: PackedWeight


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The replacement of a packed object during capture, and the buffers that it reads: name -> tensor."""

    replacement: PackedWeight | CellWeights
    tensors: dict[str, Tensor] = field(default_factory=dict)


def unpack(packed: Any, owner: torch.nn.Module, stem: str) -> Unpacked:
    """Return the replacement of a ScriptObject of packed parameters. Raises CaptureError for an unsupported kind."""
    kind = packed._type().qualified_name().rpartition(".")[2]
    if kind == "LinearPackedParamsBase":
        return _linear(packed, owner, stem)
    if kind in ("Conv2dPackedParamsBase", "Conv3dPackedParamsBase"):
        try:
            weight, bias = packed.unpack()
        except RuntimeError as cause:  # from qnnpack, except for conv2d
            raise CaptureError(
                f"PyTorch does not give the weights of a packed convolution back: {cause}",
                hint='convert the model with torch.backends.quantized.engine = "x86"',
            ) from cause
        names = ("stride", "padding", "dilation", "output_padding")
        options: dict[str, Any] = {name: [int(n) for n in getattr(packed, name)()] for name in names}
        options |= {"groups": int(packed.groups()), "transposed": bool(packed.transpose())}
        return _of_tensor(weight, bias, owner, stem, options)
    if kind == "EmbeddingPackedParamsBase":
        return _rows(operator("quantized::embedding_bag_unpack")(packed), owner, stem)
    if kind == "CellParamsBase":
        return _cell(packed, owner, stem)
    raise CaptureError(f"the model holds a {kind}, which is not a tensor and is not supported")


def _linear(packed: Any, owner: torch.nn.Module, stem: str) -> Unpacked:
    weight, bias = operator("quantized::linear_unpack")(packed)
    if not weight.is_quantized:
        raise CaptureError(
            "a linear layer with weights of float16 (dynamic quantisation) is not supported",
            hint="quantise with dtype=torch.qint8, or export the float model",
        )
    return _of_tensor(weight, bias, owner, stem, {})


def _of_tensor(
    weight: Tensor, bias: Tensor | None, owner: torch.nn.Module, stem: str, options: dict[str, Any]
) -> Unpacked:
    numbers = weight.int_repr()
    per_tensor = weight.qscheme() == torch.per_tensor_affine
    scales = torch.tensor(weight.q_scale()) if per_tensor else weight.q_per_channel_scales().float()
    zeros = torch.tensor(weight.q_zero_point()) if per_tensor else weight.q_per_channel_zero_points()
    tensors = {"weight": numbers, "scales": scales}
    zero_points = tuple(map(float, zeros.reshape(-1).tolist())) if zeros.any() else ()
    if len(set(zero_points)) > 1:
        tensors["zeros"] = zeros
    if bias is not None:
        tensors["bias"] = bias.detach().clone()
    return _unpack(PackedWeight(Buffers(owner, stem), zero_points, **options), tensors, stem)


def _rows(weight: Tensor, owner: torch.nn.Module, stem: str) -> Unpacked:
    """Return an embedding's rows, each with a scale and the value of the integer 0."""
    scales = weight.q_per_channel_scales().float()
    rows = {"scales": scales, "lowest": -weight.q_per_channel_zero_points().float() * scales}
    if weight.dtype is torch.quint4x2:  # PyTorch stores these as float16 next to the 4 bits
        rows = {name: numbers.half().float() for name, numbers in rows.items()}
    tensors = {"weight": _integers_of(weight), **{name: numbers[:, None] for name, numbers in rows.items()}}
    return _unpack(PackedWeight(Buffers(owner, stem)), tensors, stem)


def _integers_of(weight: Tensor) -> Tensor:
    """Return the integers of a quantised tensor; of 4 bits there are two in a byte, the first one in its lower half."""
    numbers = weight.int_repr()
    if weight.dtype is not torch.quint4x2:
        return numbers
    pairs = numbers.reshape(-1)
    return torch.stack([pairs & 15, pairs >> 4], 1).reshape(-1)[: weight.numel()].reshape(weight.shape)


def _cell(packed: Any, owner: torch.nn.Module, stem: str) -> Unpacked:
    (kind, biases, _, _, parts), _ = packed.__getstate__()
    if kind != "quantized_dynamic":
        raise CaptureError(
            f"a recurrent layer with weights `{kind}` is not supported", hint="quantise with torch.qint8"
        )
    replacements, tensors = [], dict[str, Tensor]()
    for part, bias, word in zip(parts, biases, ("ih", "hh"), strict=True):
        weight, own_bias = operator("quantized::linear_unpack")(part)
        unpacked = _of_tensor(weight, own_bias if own_bias is not None else bias, owner, f"{stem}{word}_", {})
        replacements.append(unpacked.replacement)
        tensors |= unpacked.tensors
    return Unpacked(CellWeights(*replacements), tensors)  # type: ignore[arg-type]


def _unpack(weight: PackedWeight, tensors: dict[str, Tensor], stem: str) -> Unpacked:
    return Unpacked(weight, {stem + word: tensor.contiguous() for word, tensor in tensors.items()})
