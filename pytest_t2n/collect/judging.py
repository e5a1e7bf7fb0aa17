"""The arguments of a test that decide how it is judged: a level, tolerances, a metric, and a time limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2n_core.check.judging.judgement import Judgement
    from t2n_core.level import TractCheckTolerance

JUDGING = {
    "tolerance": "a level of parity, or levels by the names of outputs; `float16` compares with the model in float64",
    "atol": "a number, or numbers by the names of outputs: right is what is within atol + rtol * |actual|, whatever "
    "its level",
    "rtol": "see atol; the one of both that is not given is 0",
    "metric": "a function of the expected and the actual outputs, which alone decides if neither level nor atol is "
    "given; or several by name",
    "bound": "the largest number of the metric that passes, or a text as '>= 0.99'; by name for several",
    "timeout": "seconds that an engine may take for this test, in place of --t2n-timeout",
}
"""Arguments of the marker about the judgement, with what they do."""


def judgement_of(given: Mapping[str, Any], default: TractCheckTolerance) -> Judgement:
    """Return the judgement of arguments, with this level for outputs that none is given for. Raises InputError."""
    from t2n_core.check.judging.judgement import Judgement

    wanted = {name: value for name, value in given.items() if name in JUDGING and name != "timeout"}
    return Judgement.of(**wanted, default=default)


def seconds_of(value: Any) -> float | None:
    """Return a time limit; None for none. Raises ValueError for what is no positive number of seconds."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"timeout={value!r} is not a positive number of seconds")
    return float(value)


__all__ = ["JUDGING", "judgement_of", "seconds_of"]
