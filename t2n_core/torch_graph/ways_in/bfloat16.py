"""Models in bfloat16, which neither engines nor archives have: as a copy in float32, which holds every value."""

from __future__ import annotations

import copy
import itertools
import warnings
from typing import Any

import torch

from t2n_core.errors import InputError
from t2n_core.torch_graph.ways_in.structure import leaves, mapped


def without_bfloat16(model: torch.nn.Module, calls: list[Any]) -> tuple[torch.nn.Module, list[Any]]:
    """Return the model and the tensors of `calls` with float32 for bfloat16, or both unchanged if nothing is bfloat16.

    The given model is not changed: a copy of it is. A UserWarning says what was converted. Raises InputError for a
    model that cannot be copied.
    """
    weights = [t for t in itertools.chain(model.parameters(), model.buffers()) if t.dtype == torch.bfloat16]
    inputs = [t for t in leaves(calls) if isinstance(t, torch.Tensor) and t.dtype == torch.bfloat16]
    if not weights and not inputs:
        return model, calls
    warnings.warn(
        f"{type(model).__name__}: {len(weights)} weights and {len(inputs)} inputs are bfloat16, which NNEF does not "
        "have; they are exported and checked in float32. The archive holds the same values in twice the space, and "
        "computes more exactly than the model does in bfloat16",
        UserWarning,
        stacklevel=4,
    )
    if weights:
        try:
            model = copy.deepcopy(model)
        except Exception as cause:
            raise InputError(
                f"{type(model).__name__} has bfloat16 weights and cannot be copied: {cause}",
                hint="convert it with model.float() before",
            ) from cause
        for parameter in model.parameters():
            parameter.data = _widened(parameter.data)
        for module in model.modules():
            for name, buffer in list(module.named_buffers(recurse=False)):
                setattr(module, name, _widened(buffer))
    return model, mapped(calls, lambda leaf: _widened(leaf) if isinstance(leaf, torch.Tensor) else leaf)


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype == torch.bfloat16 else tensor


__all__ = ["without_bfloat16"]
