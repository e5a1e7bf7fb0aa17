"""The size of a mismatch, which an expectation limits: an entry for a difference of 0.001 must not hide one of 500."""

from __future__ import annotations

import math

from pytest_t2n.records.schema import CellLine, Number, OutputLine

_ROOM = 2.0
"""Factor on a measured size, since other machines sum in another order."""
_STEPS = (1, 2, 5, 10)


def off_by(record: CellLine) -> float:
    """Return the largest difference of a mismatch; infinity if anything but finite numbers differs.

    For a metric it is the distance of its value from its bound.
    """
    sizes = [_off(output) for output in record.outputs if output.status == "mismatch"]
    sizes += [_beyond(metric.value, metric.required) for metric in record.metrics if not metric.passed]
    return max(sizes, default=math.inf)


def with_room(size: float) -> float:
    """Return the size to write for a measured one: at least twice as much, and infinity for infinity.

    It is a power of ten, or 2 or 5 times one.
    """
    minimum = size * _ROOM
    if not math.isfinite(minimum) or minimum <= 0:
        return math.inf
    exponent = math.floor(math.log10(minimum))
    return next((candidate for step in _STEPS if (candidate := float(f"{step}e{exponent}")) >= minimum), math.inf)


def _off(output: OutputLine) -> float:
    # no number can bound another type or shape, NaN and infinities
    return math.inf if output.problem else _finite(output.max_abs)


def _beyond(value: Number, required: str) -> float:
    return _finite(abs(float(value) - float(required.split()[-1])))


def _finite(number: Number) -> float:
    value = float(number)
    return math.inf if math.isnan(value) else value
