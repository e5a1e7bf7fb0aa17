"""Large tensors in unnamed files, which the system pages out if memory is short.

The files are in the folder for temporary files (TMPDIR) and occupy space there as long as their tensors live.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch

from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.compat.private import TorchDispatchMode, pytree

_TO_COPY = operator("aten::_to_copy.default")

LARGE: Final = 8 << 20
"""Bytes from which a tensor is put into a file."""


def tensor_on_disk(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Return an uninitialised tensor. It is in memory if it is small, or if the disk is full."""
    count = math.prod(shape)
    size = count * dtype.itemsize
    if size < LARGE or not hasattr(os, "posix_fallocate"):
        return torch.empty(tuple(shape), dtype=dtype)
    try:
        with tempfile.NamedTemporaryFile(prefix="t2n-") as file:
            os.posix_fallocate(file.fileno(), 0, size)  # otherwise a full disk would kill the process at a later write
            return torch.from_file(file.name, shared=True, size=count, dtype=dtype).view(tuple(shape))
    except OSError:
        return torch.empty(tuple(shape), dtype=dtype)


class _OnDisk(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is _TO_COPY and _is_plain(args[0]) and _is_cpu(kwargs.get("device")):
            return tensor_on_disk(args[0].shape, kwargs.get("dtype") or args[0].dtype).copy_(args[0])
        result = func(*args, **kwargs)
        storages = {_storage(leaf) for leaf in pytree.tree_leaves((args, kwargs)) if _is_plain(leaf)}
        return pytree.tree_map(
            lambda leaf: _move(leaf) if _is_plain(leaf) and _storage(leaf) not in storages else leaf, result
        )


@contextmanager
def tensors_on_disk() -> Iterator[None]:
    """While active, the large CPU tensors that operators return are moved into files, one by one."""
    with _OnDisk():  # type: ignore[no-untyped-call]
        yield


def _is_plain(value: Any) -> bool:
    is_tensor = type(value) in (torch.Tensor, torch.nn.Parameter)
    return is_tensor and value.device.type == "cpu" and value.layout is torch.strided


def _is_cpu(device: torch.device | None) -> bool:
    return device is None or torch.device(device).type == "cpu"


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _move(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.untyped_storage().nbytes() < LARGE:
        return tensor
    return tensor_on_disk(tensor.shape, tensor.dtype).copy_(tensor)
