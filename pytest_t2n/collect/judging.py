"""The arguments of a test about its judgement: a level, tolerances, a metric, and a time limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2n_core.check.judging.judgement import Judgement
    from t2n_core.level import TractCheckTolerance

JUDGING = {
    "tolerance": "a parity level, or levels by the names of outputs; `float16` compares with the model in float64",
    "atol": "a number, or numbers by the names of outputs: elements within atol + rtol * |actual| are right, "
    "independent of the level",
    "rtol": "see atol; the one of the two that is not given is 0",
    "metric": "a function of the expected and the actual outputs, which decides alone if neither level nor atol is "
    "given; or several by name",
    "bound": "the largest value of the metric that passes, or a text such as '>= 0.99'; by name for several",
    "timeout": "seconds that an engine may take for this test, in place of --t2n-timeout",
}
"""Arguments of the marker about the judgement, with their help."""


def judgement_of(given: Mapping[str, Any], default: TractCheckTolerance) -> Judgement:
    """Return the judgement for arguments, with a default level for other outputs. Raises InputError."""
    from t2n_core.check.judging.judgement import Judgement

    wanted = {name: value for name, value in given.items() if name in JUDGING and name != "timeout"}
    return Judgement.of(**wanted, default=default)


def seconds_of(value: Any) -> float | None:
    """Return a time limit, or None. Raises ValueError for anything but a positive number of seconds."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"timeout={value!r} is not a positive number of seconds")
    return float(value)


__all__ = ["JUDGING", "judgement_of", "seconds_of"]
