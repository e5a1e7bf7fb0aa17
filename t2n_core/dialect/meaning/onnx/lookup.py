"""Translation of values into indices and back."""

from __future__ import annotations

import numpy as np

from t2n_core.dialect.arrays import Array
from t2n_core.dialect.registry import defines


@defines("tract_onnx_ml_direct_lookup", result="values")
def direct_lookup(input: Array, values: Array, fallback: Array | float) -> Array:
    """Return the values at indices, and a fallback for an index without a value.

    Shapes: same as the input. Domain: the input is int32; values and fallback have one type.
    Special values: a negative index has no value; it does not count from the end.
    Source: ONNX LabelEncoder-ml-2; tract onnx-opl/src/ml/category_mapper.rs.
    """
    index = np.asarray(input, dtype=np.int64)
    in_table = (index >= 0) & (index < len(values))
    default = np.asarray(fallback, dtype=values.dtype).reshape(())
    if not len(values):
        return np.full(index.shape, default)
    return np.where(in_table, values[np.where(in_table, index, 0)], default)


@defines("tract_onnx_ml_reverse_lookup", result="int32")
def reverse_lookup(input: Array, keys: Array, fallback: int) -> Array:
    """Return the first index of each value among keys, and a fallback for a value that is not among them.

    Shapes: same as the input. Domain: input and keys have one type, of integers, booleans or strings.
    Source: ONNX LabelEncoder-ml-2; tract onnx-opl/src/ml/category_mapper.rs.
    """
    equal = np.expand_dims(input, -1) == keys
    indices = np.argmax(equal, axis=-1) if len(keys) else np.zeros(input.shape, dtype=np.int64)
    return np.where(equal.any(axis=-1), indices, int(fallback)).astype(np.int32)
