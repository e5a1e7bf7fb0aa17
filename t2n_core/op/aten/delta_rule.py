"""The gated delta rule of linear attention, as the engine's own operator."""

from __future__ import annotations

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.op.registry import op
from t2n_core.torch_graph.custom_ops import delta_rule as _declared  # noqa: F401  the operator lives there


@op("t2n_recurrent::gated_delta_rule", target="tract", needs=("tract_transformers_gdn_recurrent",))
def gated_delta_rule(
    g: Emitter, query: Value, key: Value, value: Value, log_decay: Value, beta: Value, state: Value | None
) -> tuple[Value, Value]:
    """Write the rule for the whole sequence as one operation, which computes in float32."""
    results, last = g.node.outputs
    before = g.fill(0.0, last.shape, FLOAT32) if state is None else g.cast(state, FLOAT32)
    found = g.call(
        "tract_transformers_gdn_recurrent",
        *(g.cast(given, FLOAT32) for given in (query, key, value, log_decay, beta)),
        before,
        outs=[Expected(results.shape, FLOAT32), Expected(last.shape, FLOAT32)],
    )
    return g.cast(found[0], results.dtype), g.cast(found[1], last.dtype)
