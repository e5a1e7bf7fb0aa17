"""Operators that change nothing in an exported graph, and casts."""

from __future__ import annotations

from typing import Any

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op.registry import op


@op("aten::clone", "aten::contiguous", "aten::positive", "aten::resolve_conj", "aten::resolve_neg")
def clone(g: Emitter, self: Value) -> Value:
    """Return the tensor itself; copies that keep their strides are already removed during capture."""
    return self


@op("aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout")
def dropout(g: Emitter, input: Value, p: float, train: bool) -> Value:
    """Refuse active dropout; inactive dropout is removed during capture."""
    raise g.fail("dropout is active: the module is in training mode", hint="call model.eval() before exporting")


@op("aten::to", "aten::_to_copy")
def to(g: Emitter, self: Value, dtype: Any = None, other: Value | None = None, copy: bool = False) -> Value:
    return g.cast(self, g.output.dtype)


@op("aten::type_as", "prims::convert_element_type")
def type_as(
    g: Emitter, self: Value | None = None, a: Value | None = None, other: Any = None, dtype: Any = None
) -> Value:
    source = self if self is not None else a
    assert source is not None
    return g.cast(source, g.output.dtype)
