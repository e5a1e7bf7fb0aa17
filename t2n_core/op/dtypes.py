"""Mapping of PyTorch's dtypes to numpy's, which the archive uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from t2n_core.errors import LowerError

_NUMPY = {
    torch.bool: np.bool_,
    torch.uint8: np.uint8,
    torch.uint16: np.uint16,
    torch.uint32: np.uint32,
    torch.uint64: np.uint64,
    torch.int8: np.int8,
    torch.int16: np.int16,
    torch.int32: np.int32,
    torch.int64: np.int64,
    torch.float16: np.float16,
    torch.float32: np.float32,
    torch.float64: np.float64,
}


def numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """Return numpy's dtype. Raises LowerError if archives cannot hold it (bfloat16, complex, quantised)."""
    if dtype not in _NUMPY:
        hint = "convert the model with model.float() first" if dtype is torch.bfloat16 else None
        if dtype.is_complex:
            hint = "take real tensors as inputs, and make them complex in the model: torch.view_as_complex(x)"
        raise LowerError(f"{dtype} cannot be expressed in NNEF", hint=hint)
    return np.dtype(_NUMPY[dtype])


_TORCH = {np.dtype(n): t for t, n in _NUMPY.items()}


def torch_dtype(dtype: np.dtype[Any]) -> torch.dtype:
    """Return the inverse of `numpy_dtype`."""
    return _TORCH[dtype]
