"""Detect inputs from which PyTorch silently computes something without a meaning: they cannot be samples."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Final

from t2n_core.errors import InputError
from t2n_core.torch_graph.compat.private import TorchDispatchMode
from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph
from t2n_core.torch_graph.precision.units import name_of

_EDGES: Final = {
    "aten::searchsorted.Tensor": 0,
    "aten::searchsorted.Scalar": 0,
    "aten::bucketize.Tensor": 1,
    "aten::bucketize.Scalar": 1,
}
"""Operators that search in edges, with the place of the edges among their arguments: these have to be sorted."""
_NAMES: Final = frozenset({"bucketize", "searchsorted"})


class _Domain(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Raises InputError for calls whose result PyTorch does not define."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        index, more = _EDGES.get(func.name()), kwargs or {}
        if index is not None and more.get("sorter") is None:
            edges = args[index]
            if not (edges[..., :-1] <= edges[..., 1:]).all():
                raise InputError(f"{func.name()} searches in edges that are not sorted")
        return func(*args, **more)


def domain_of(graph: TorchModuleIRGraph) -> AbstractContextManager[Any] | None:
    """Return a context in which the model of this graph raises InputError for inputs without a meaning in PyTorch.

    None if it has a meaning for all inputs that it accepts.
    """
    if not any(name_of(op.kind) in _NAMES for op in graph.op_nodes):
        return None
    return _Domain()  # type: ignore[no-untyped-call]
