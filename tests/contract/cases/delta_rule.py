"""The gated delta rule of linear attention over a sequence, with and without a state."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from t2n_core.torch_graph.custom_ops import delta_rule as _declared  # noqa: F401  the operator lives there
from tests.contract.cases import Case, case, randn, uniform

SINCE = "0.23.5"
"""The first release with the engine's operator."""
LENGTH, WIDTH = 5, 3


def _rule(query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor, state: Any = None) -> Any:
    return torch.ops.t2n_recurrent.gated_delta_rule(query, key, value, decay, beta, state)


def rule(
    name: str, *, batch: int = 2, heads: int = 4, groups: int = 2, state: bool = True,
    decay: tuple[float, float] = (-3.0, 0.0), dtype: torch.dtype = torch.float32,
) -> Case:  # fmt: skip
    """A gated delta rule over a sequence of any length."""
    query, key = (randn(batch, LENGTH, heads // groups, WIDTH, dtype=dtype) for _ in range(2))
    inputs = [query, key, randn(batch, LENGTH, heads, WIDTH, dtype=dtype), uniform(*decay, batch, LENGTH, heads)]
    inputs.append(uniform(0.0, 1.0, batch, LENGTH, heads, dtype=dtype))
    if state:
        inputs.append(randn(batch, heads, WIDTH, WIDTH))
    axes = {index: {1: "S"} for index in range(5)}
    return case(f"delta rule {name}", _rule, *inputs).dynamic(axes).refused("gated_delta_rule", before=SINCE)


CASES = [
    rule("in groups"),
    rule("of single heads", groups=1),
    rule("of one sequence", batch=1),
    rule("without a state", state=False),
    rule("without decay", decay=(0.0, 0.0)),
    rule("that forgets all", decay=(-200.0, -100.0)),
    rule("in float16", dtype=torch.float16),
]
