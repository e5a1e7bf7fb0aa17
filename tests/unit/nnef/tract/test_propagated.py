"""Properties that a value has from those it is made of."""

from __future__ import annotations

import numpy as np

from t2n_core.nnef.graph import Operation, Value
from t2n_core.nnef.tract.propagated import Propagated


def made_of(*sources: Value) -> Value:
    value = Value("v", np.dtype(np.float32), (2,))
    value.producer = Operation("add", dict(zip("xy", sources, strict=False)), (value,), None)
    return value


def test_each_value_is_looked_at_once_in_a_graph_deeper_than_the_stack() -> None:
    looked: list[Value] = []
    first = value = Value("x", np.dtype(np.float32), (2,))
    values = [first]
    for _ in range(3000):
        value = made_of(value, value)
        values.append(value)
    starts = Propagated(
        lambda v: list(v.producer.inputs()) if v.producer else [],
        lambda v, operand_flags: (looked.append(v), v is first or any(operand_flags))[1],  # type: ignore[func-returns-value]
    )
    assert all(map(starts, reversed(values)))
    assert len(looked) == len(values)
