"""The gated delta rule of linear attention, as the engine's own operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import FLOAT32, Operation, Value
from t2n_core.op.registry import op
from t2n_core.torch_graph.custom_ops import delta_rule as _declared  # noqa: F401  the operator lives there

_PASSED: Final = frozenset({"mul", "reshape", "slice", "squeeze", "tract_core_cast", "transpose", "unsqueeze"})
"""Operators between the rule and the sigmoids of its operands."""


@op("t2n_recurrent::gated_delta_rule", target="tract", needs=("tract_transformers_gdn_recurrent",))
def gated_delta_rule(
    g: Emitter, query: Value, key: Value, value: Value, log_decay: Value, beta: Value, state: Value | None
) -> tuple[Value, Value]:
    """Write the rule for the whole sequence as one operation, which computes in float32.

    The engine's kernel of `sigmoid` leaves the upper halves of an x86 processor's vector registers in use, which makes
    the code of this operator, without vectors, two to three times slower. `exp` is no such kernel, and ends that state.
    """
    results, last = g.node.outputs
    before = g.fill(0.0, last.shape, FLOAT32) if state is None else g.cast(state, FLOAT32)
    operands = (query, key, value, log_decay, beta)
    for sigmoid in list(dict.fromkeys(sigmoid for one in operands for sigmoid in _sigmoids_before(one))):
        _by_exp(g, sigmoid)
    found = g.call(
        "tract_transformers_gdn_recurrent",
        *(g.cast(given, FLOAT32) for given in operands),
        before,
        outs=[Expected(results.shape, FLOAT32), Expected(last.shape, FLOAT32)],
    )
    return g.cast(found[0], results.dtype), g.cast(found[1], last.dtype)


def _sigmoids_before(value: Value) -> Iterator[Operation]:
    """Yield the sigmoids that a value is computed from by products, casts and layouts alone."""
    operation = value.producer
    if operation is None:
        return
    if operation.name == "sigmoid":
        yield operation
    elif operation.name in _PASSED:
        for operand in operation.inputs():
            yield from _sigmoids_before(operand)


def _by_exp(g: Emitter, sigmoid: Operation) -> None:
    """Replace a sigmoid by `1 / (1 + exp(-x))` in place."""
    operations, (result,) = g.graph.operations, sigmoid.outputs
    at, first = operations.index(sigmoid), len(operations)
    g.div(1.0, g.add(g.exp(g.neg(sigmoid.arguments["x"])), 1.0), out=Expected(result.shape, result.dtype))
    written = operations[first:]
    del operations[first:]
    written[-1].outputs, result.producer = (result,), written[-1]
    operations[at : at + 1] = written
