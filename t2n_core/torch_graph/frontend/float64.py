"""Runs of a float32 model in float64, to tell its rounding from wrong values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.compat.private import TorchDispatchMode, pytree

_READS_BITS: Final = operator("aten::view.dtype")


@contextmanager
def in_float64() -> Iterator[None]:
    """Use float64 for float32 in the tensors that a model creates, casts and holds.

    Raises TypeError in a model that reads the bits of its numbers.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _InFloat64():  # type: ignore[no-untyped-call]
            yield
    finally:
        torch.set_default_dtype(before)


class _InFloat64(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _READS_BITS:
            raise TypeError("the bits of float32 are not those of float64")
        is_mutable = func._schema.is_mutable

        def widen(argument: Any) -> Any:
            if argument is torch.float32:
                return torch.float64
            is_single = isinstance(argument, torch.Tensor) and argument.dtype == torch.float32
            return argument.double() if is_single and not is_mutable else argument

        args, kwargs = pytree.tree_map(widen, (args, kwargs or {}))
        return func(*args, **kwargs)
