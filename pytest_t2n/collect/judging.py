"""The arguments of a test about its judgement: a level, tolerances, a metric, and a time limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2n_core.level import TractCheckTolerance
    from t2n_core.parity.judging.judgement import Judgement

JUDGING = ("tolerance", "atol", "rtol", "metric", "bound", "reference", "timeout")
"""Arguments of the marker about the judgement; docs/reference/judging.md describes them."""


def judgement_of(arguments: Mapping[str, Any], default: TractCheckTolerance) -> Judgement:
    """Return the judgement for arguments, with a default level for other outputs. Raises InputError."""
    from t2n_core.parity.judging.judgement import Judgement

    criteria = {name: value for name, value in arguments.items() if name in JUDGING and name != "timeout"}
    return Judgement.of(**criteria, default=default)


def seconds_of(value: Any) -> float | None:
    """Return a time limit, or None. Raises ValueError for anything but a positive number of seconds."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"timeout={value!r} is not a positive number of seconds")
    return float(value)
