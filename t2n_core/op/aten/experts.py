"""Experts of a mixture that a linear router picks, as the engine's own operator."""

from __future__ import annotations

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.op.registry import op
from t2n_core.torch_graph.custom_ops import experts as _declared  # noqa: F401  the operators live there


@op("t2n_experts::routed", target="tract", needs=("tract_moe_ffn",), implied=("is_grouped",))
def routed(
    g: Emitter,
    hidden_states: Value,
    router: Value,
    router_bias: Value | None,
    k: int,
    gate: str,
    up_proj: Value,
    up_bias: Value | None,
    down_proj: Value,
    down_bias: Value | None,
    activation: str,
    has_gate: bool,
    alpha: float | None,
    limit: float | None,
    is_transposed: bool,
) -> Value:
    """Write the router, its choice, the experts and the sum of their outputs as one operation."""
    features = 2 if is_transposed else 1
    w1, w3 = _halves(g, up_proj, features, has_gate, limit is not None)
    w1_bias, w3_bias = (None, None) if up_bias is None else _halves(g, up_bias, 1, has_gate, limit is not None)
    optional_weights = {"w3": w3, "wg_bias": router_bias, "w1_bias": w1_bias, "w3_bias": w3_bias, "w2_bias": down_bias}
    clamped = {} if limit is None else {"act_alpha": 1.0 if alpha is None else alpha, "act_limit": limit}
    result: Value = g.tract_moe_ffn(
        hidden_states,
        router,
        w1,
        down_proj,
        **{name: value for name, value in optional_weights.items() if value is not None},
        k=k,
        activation=activation,
        gate=gate,
        **clamped,
        expert_layout="canonical" if is_transposed else "linear",
        out=Expected(g.output.shape, FLOAT32),
    )
    return result


def _halves(g: Emitter, both: Value, axis: int, has_gate: bool, alternate: bool) -> tuple[Value, Value | None]:
    """Return the gate's rows and the features' rows; all rows and None without a gate."""
    if not has_gate:
        return both, None
    count = int(both.shape[axis])
    if alternate:  # a slice is the one operation that the engine computes ahead whatever a weight's size
        pairs = g.reshape_to(both, (*both.shape[:axis], count // 2, 2, *both.shape[axis + 1 :]))
        gate, up = (g.squeeze(g.take(pairs, axis + 1, index, index + 1), axes=[axis + 1]) for index in (0, 1))
        return gate, up
    return g.take(both, axis, 0, count // 2), g.take(both, axis, count // 2, count)
