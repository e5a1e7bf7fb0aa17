"""Models in bfloat16, which neither engines nor archives support: converted to a float32 copy, which is exact."""

from __future__ import annotations

import copy
import itertools
import warnings
from typing import Any

import torch

from t2n_core.errors import InputError, PrecisionWarning
from t2n_core.torch_graph.frontend.pytree.structure import leaves, map_leaves

_COPYING = ("__deepcopy__", "__reduce_ex__", "__reduce__", "__getstate__", "__setstate__")
"""Methods of a class that decide the contents of a copy."""


def without_bfloat16(model: torch.nn.Module, calls: list[Any]) -> tuple[torch.nn.Module, list[Any]]:
    """Return the model and the tensors of `calls` with float32 for bfloat16, or both unchanged if nothing is bfloat16.

    The model is copied and not changed. A PrecisionWarning reports what was converted.

    Raises InputError for a model that cannot be copied.
    """
    weights = [t for t in itertools.chain(model.parameters(), model.buffers()) if t.dtype == torch.bfloat16]
    inputs = [t for t in leaves(calls) if isinstance(t, torch.Tensor) and t.dtype == torch.bfloat16]
    if not weights and not inputs:
        return model, calls
    warnings.warn(
        f"{type(model).__name__}: weights ({len(weights)}) and inputs ({len(inputs)}) are bfloat16, which NNEF does "
        "not have; they are exported and checked in float32. The archive holds the same values in twice the space, and "
        "computes more exactly than the model does in bfloat16",
        PrecisionWarning,
        stacklevel=4,
    )
    if weights:
        try:
            model = _copy(model)
        except Exception as cause:
            raise InputError(
                f"{type(model).__name__} has bfloat16 weights and cannot be copied: {cause}",
                hint="convert it with model.float() before",
            ) from cause
        for parameter in model.parameters():
            parameter.data = _widen(parameter.data)
        for module in model.modules():
            for name, buffer in list(module.named_buffers(recurse=False)):
                setattr(module, name, _widen(buffer))
    return model, map_leaves(calls, lambda leaf: _widen(leaf) if isinstance(leaf, torch.Tensor) else leaf)


def _copy(model: torch.nn.Module) -> torch.nn.Module:
    """Return a complete copy of the model, even if methods of its classes would leave something out.

    The archive is made from the copy and compared with it, so a difference would not be noticed.
    """
    copies = {module: object.__new__(type(module)) for module in model.modules() if _has_own_copy(type(module))}
    memo = {id(module): copied for module, copied in copies.items()}
    for module, copied in copies.items():
        vars(copied).update(copy.deepcopy(vars(module), memo))
    return copy.deepcopy(model, memo)


def _has_own_copy(kind: type) -> bool:
    """Return whether a class that is not PyTorch's decides the contents of a copy."""
    classes = (base for base in kind.__mro__ if base.__module__.partition(".")[0] not in ("torch", "builtins"))
    return any(name in vars(base) for base in classes for name in _COPYING)


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype == torch.bfloat16 else tensor
