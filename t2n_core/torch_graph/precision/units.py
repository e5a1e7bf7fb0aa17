"""Units of a plan: one torch operator in one module."""

from __future__ import annotations

from typing import Final

import torch

from t2n_core.torch_graph.custom_ops.module_calls import is_module_call
from t2n_core.torch_graph.graph.ir import TorchOp

Unit = tuple[str, str]
"""Module path and name of the torch operator."""
MOVERS: Final = frozenset(
    "view reshape permute transpose expand expand_as unsqueeze squeeze slice select clone contiguous flatten unflatten "
    "chunk split split_with_sizes unbind t cat stack repeat view_as detach alias dropout roll flip gather index_select "
    "unfold narrow movedim pad constant_pad_nd pixel_shuffle pixel_unshuffle reshape_as index repeat_interleave "
    "swapaxes channel_shuffle lift_fresh_copy relu max_pool1d max_pool2d max_pool3d embedding tile diagonal where "
    "masked_fill hstack vstack concat as_strided neg abs copy scatter index_put tril triu type_as "
    "slice_scatter select_scatter new_empty new_zeros new_ones new_full empty_like zeros_like ones_like "
    "full_like".split()
)
"""Operators that return elements of their inputs, or constants: their dtype is their inputs' dtype."""

_IN_FLOAT32: Final = frozenset({"t2n_recurrent::gated_delta_rule"})
"""Operators that compute in float32 whatever the dtype of their inputs: casts around them only round."""


def name_of(kind: str) -> str:
    """Return the name of an operator without namespace and overload: `conv2d`."""
    return kind.rpartition("::")[2].partition(".")[0]


def unit_of(op: TorchOp) -> Unit | None:
    """Return the unit of an operator; None if it computes no float32, must stay in it, or only moves elements."""
    if is_module_call(op.kind) or op.kind in _IN_FLOAT32 or name_of(op.kind) in MOVERS:
        return None
    reads = any(v.dtype is torch.float32 for v in op.inputs)
    if not reads or not any(o is not None and o.dtype is torch.float32 for o in op.outputs):
        return None
    return op.module_path, name_of(op.origin.op if op.origin else op.kind)
