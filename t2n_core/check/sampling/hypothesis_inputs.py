"""Input sets drawn by hypothesis, if a strategy is given instead of a list."""

from __future__ import annotations

import sys
from typing import Any

EXAMPLES = 10
"""Number of draws from a strategy; each is one more run of the archive, without a capture."""


def is_strategy(value: object) -> bool:
    """Return whether this is a strategy of hypothesis, without importing hypothesis."""
    strategies = sys.modules.get("hypothesis.strategies")
    return strategies is not None and isinstance(value, strategies.SearchStrategy)


def draw_inputs(strategy: Any, count: int = EXAMPLES) -> list[Any]:
    """Draw at most `count` different values, the same in each session, with NumPy arrays as tensors.

    Exceptions of the strategy propagate.
    """
    import numpy as np
    import torch
    from hypothesis import HealthCheck, Phase, given, settings

    from t2n_core.torch_graph.compat.private import pytree

    values: list[Any] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Any) -> None:
        values.append(value)

    collect()
    return [pytree.tree_map_only(np.ndarray, torch.from_numpy, value) for value in values]
