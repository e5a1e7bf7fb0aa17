"""The gated delta rule of linear attention, as the engine's own operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import FLOAT32, Operation, Value, new_operation
from t2n_core.op.registry import op
from t2n_core.torch_graph.custom_ops import delta_rule as _declared  # noqa: F401  the operator lives there

_PASSED: Final = frozenset({"mul", "reshape", "slice", "squeeze", "tract_core_cast", "transpose", "unsqueeze"})
"""Operators between the rule and the sigmoids of its operands."""


@op("t2n_recurrent::gated_delta_rule", target="tract", needs=("tract_transformers_gdn_recurrent",))
def gated_delta_rule(
    g: Emitter, query: Value, key: Value, value: Value, log_decay: Value, beta: Value, state: Value | None
) -> tuple[Value, Value]:
    """Write the rule for the whole sequence as one operation, which computes in float32.

    The engine's `sigmoid` kernel returns without `vzeroupper` on x86, so that the scalar code of this operator, which
    runs next, pays the AVX-SSE transition penalty: it takes two to three times as long. After the `exp` kernel, which
    is compiled Rust, it does not.
    """
    results, last = g.node.outputs
    before = g.fill(0.0, last.shape, FLOAT32) if state is None else g.cast(state, FLOAT32)
    operands = (query, key, value, log_decay, beta)
    for sigmoid in list(dict.fromkeys(sigmoid for operand in operands for sigmoid in _sigmoids_before(operand))):
        _by_exp(g, sigmoid)
    outputs = g.call(
        "tract_transformers_gdn_recurrent",
        *(g.cast(operand, FLOAT32) for operand in operands),
        before,
        outs=[Expected(results.shape, FLOAT32), Expected(last.shape, FLOAT32)],
    )
    return g.cast(outputs[0], results.dtype), g.cast(outputs[1], last.dtype)


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
    """Replace a sigmoid by `1 / (1 + exp(-x))` in place.

    All operations are new: an equal operation in the graph may come after the sigmoid.
    """
    (result,) = sigmoid.outputs
    written: list[Operation] = []

    def write(operator: str, **arguments: Any) -> Value:
        value = Value(g.unique(f"{result.name}_{operator}"), result.dtype, result.shape)
        written.append(new_operation(operator, arguments, value, sigmoid.origin))
        return value

    powers = write("exp", x=write("neg", x=sigmoid.arguments["x"]))
    arguments = {"x": 1.0, "y": write("add", x=powers, y=1.0)}
    written.append(new_operation("div", arguments, result, sigmoid.origin))
    at = g.graph.operations.index(sigmoid)
    g.graph.operations[at : at + 1] = written
