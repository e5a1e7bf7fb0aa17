"""Numpy arrays among the arguments of a model, which are converted to tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from t2n_core.errors import InputError
from t2n_core.torch_graph.frontend.pytree.structure import map_leaves


def with_tensors(arguments: Any) -> Any:
    """Return arguments with a new tensor in place of each numpy array, at any depth.

    Raises InputError for an array whose dtype PyTorch does not support.
    """
    return map_leaves(arguments, _tensor)


def _tensor(leaf: Any) -> Any:
    if not isinstance(leaf, np.ndarray):
        return leaf
    try:
        return torch.from_numpy(leaf.astype(leaf.dtype.newbyteorder("="), order="C", copy=True))
    except TypeError:
        raise InputError(
            f"no tensor has the type {leaf.dtype} of a numpy array of shape {list(leaf.shape)} among the inputs",
            hint="convert it with .astype(…)",
        ) from None
