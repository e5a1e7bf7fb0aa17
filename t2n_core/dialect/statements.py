"""Operators that need more than their arguments: the archive, the data type in angle brackets, or fragments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from t2n_core.dialect.run import Run
from t2n_core.dialect.scan import scan
from t2n_core.dialect.tensors import Tensor, datum_type, tensor_of
from t2n_core.errors import InputError, MalformedArchiveError
from t2n_core.nnef.reading.archive import StoredTensor
from t2n_core.nnef.reading.tree import Call


def variable(run: Run, operation: Call, arguments: Mapping[str, Any]) -> Tensor:
    """Return the tensor that the archive stores under a label.

    Shapes: same as the stored tensor, which `shape` repeats; raises MalformedArchiveError if they differ.
    Special values: blocks of 4 bits are (nibble - 8) * scale, as float32.
    Source: NNEF 1.0.5, Introducing Operations (variable); tract nnef/src/ops/nnef/deser.rs.
    """
    label, shape = arguments["label"], tuple(arguments["shape"])
    stored = run.tensors.get(label, run.tensors.get(label.lstrip("/")))
    if stored is None:
        raise MalformedArchiveError(f"the archive has no tensor {label!r}")
    if stored.shape != shape and np.prod(stored.shape) == np.prod(shape) and isinstance(stored, StoredTensor):
        stored = StoredTensor(stored.data, shape)
    if stored.shape != shape:
        raise MalformedArchiveError(f"the tensor {label!r} has the shape {list(stored.shape)}, not {list(shape)}")
    return Tensor(stored, np.dtype(np.float32) if isinstance(stored, StoredTensor) else stored.dtype, True)


def external(run: Run, operation: Call, arguments: Mapping[str, Any]) -> Tensor:
    """Return an input of the graph.

    Source: NNEF 1.0.5, Introducing Operations (external); tract nnef/src/ops/core/source.rs (tract_core_external).
    """
    raise InputError("an input is not among those of the graph")


def cast(run: Run, operation: Call, arguments: Mapping[str, Any]) -> Tensor:
    """Return the tensor in the data type in angle brackets.

    Special values: floats are cut off towards zero for integers; what is not zero is true.
    Source: NNEF 1.0.5, Miscellaneous Operations (cast).
    """
    tensor = tensor_of(arguments["input"])
    dtype = datum_type(operation.dtype or "scalar")
    array = tensor.array != 0 if dtype.kind == "b" else tensor.array
    return run.typed(np.asarray(array).astype(np.float64 if dtype.kind == "f" else dtype), dtype)


def update(run: Run, operation: Call, arguments: Mapping[str, Any]) -> Tensor:
    """Return the new value of a variable, which it has from the next run on.

    Source: NNEF 1.0.5, Variable Updates.
    """
    return tensor_of(arguments["value"])


STATEMENTS: Final[dict[str, Callable[[Run, Call, Mapping[str, Any]], Any]]] = {
    "variable": variable,
    "external": external,
    "tract_core_external": external,
    "cast": cast,
    "update": update,
    "tract_core_scan": scan,
}
"""Their definitions; the first argument is the run that they belong to."""
