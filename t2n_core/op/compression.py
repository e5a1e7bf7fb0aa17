"""Weights in blocks of 4 bits (Q4_0): 32 neighbours in a row share a scale, and are -8 to 7 times that.

The scale is that of llama.cpp's format: the number of largest magnitude becomes -8. It is stored as float16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from t2n_core.nnef.graph import BLOCK_ELEMENTS, FLOAT32, BlockLayout
from t2n_core.nnef.writing_options import WritingOptions
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph, tensors_in
from t2n_core.torch_graph.tensors_on_disk import tensor_on_disk

_ROWS_AT_A_TIME = 1 << 20
"""Elements that are compressed at a time, to bound the memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Q40Weight:
    """A matrix as the source of a variable; the engine sees float32, the archive holds blocks."""

    tensor: torch.Tensor
    layout: BlockLayout

    @property
    def dtype(self) -> np.dtype[Any]:
        return FLOAT32

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    def chunks(self) -> Iterator[memoryview]:
        for _, rows in _parts(self.tensor):
            numbers, scales = _blocks(rows)
            if self.layout is BlockLayout.NEIGHBOURS:
                nibbles = numbers[:, 0::2] | (numbers[:, 1::2] << 4)
            else:
                nibbles = numbers[:, :16] | (numbers[:, 16:] << 4)
            packed = np.concatenate([scales.astype("<f2").view(np.uint8).reshape(-1, 2), nibbles], axis=1)
            yield packed.reshape(-1).data


def _blocks(rows: torch.Tensor) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """Return [blocks, 32] numbers from 0 to 15, which stand for -8 to 7, and [blocks] scales.

    For a float16 tensor the scales have 8 significant bits, so that each product with a number is exact in float16, and
    PyTorch can hold the values that the engine computes with.
    """
    blocks = rows.detach().cpu().to(torch.float32).numpy().reshape(-1, BLOCK_ELEMENTS)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
    scales = (largest / -8).astype(np.float16)
    if rows.dtype == torch.float16:
        scales = (scales.view(np.uint16) & 0xFFF8).view(np.float16)
    wide = scales.astype(np.float32)
    steps = np.divide(blocks, wide, out=np.zeros_like(blocks), where=wide != 0)
    return np.clip(np.floor(steps + 8.5), 0, 15).astype(np.uint8), scales[:, 0]


def dequantised(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values that the engine reads out of the blocks, in the dtype of the tensor."""
    found = tensor_on_disk(tensor.shape, tensor.dtype)
    for start, rows in _parts(tensor):
        numbers, scales = _blocks(rows)
        values = (numbers.astype(np.float32) - 8) * scales.astype(np.float32)[:, None]
        found[start : start + len(rows)] = torch.from_numpy(values.reshape(tuple(rows.shape)))
    return found


def _parts(tensor: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield some rows of a matrix at a time, with the place of the first."""
    size = max(1, _ROWS_AT_A_TIME // tensor.shape[1])
    for start in range(0, tensor.shape[0], size):
        yield start, tensor[start : start + size]


def compressible(graph: TorchModuleIRGraph, options: WritingOptions) -> frozenset[str]:
    """Return the labels of the matrices of whole blocks that only linear layers (and embeddings, if wanted) read."""
    if options.weight_compression is None:
        return frozenset()
    wanted: set[str] = set()
    others = {v.label for v in graph.outputs if v.data is not None}
    for op in graph.op_nodes:
        packet = op.kind.split(".")[0]
        fits = packet == "aten::linear" or (packet == "aten::embedding" and options.compresses_embeddings)
        for name, argument in op.arguments.items():
            for variable in tensors_in([argument]):
                suits = fits and name == "weight" and _is_matrix_of_blocks(variable)
                (wanted if suits else others).add(variable.label)
    return frozenset(wanted - others - {""})


def _is_matrix_of_blocks(variable: TensorVariable) -> bool:
    data = variable.data
    return (
        data is not None
        and data.dtype in (torch.float16, torch.float32)
        and data.dim() == 2
        and data.shape[1] % BLOCK_ELEMENTS == 0
        and data.numel() > 0
    )


__all__ = ["Q40Weight", "compressible", "dequantised"]
