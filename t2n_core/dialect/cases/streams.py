"""Cases of operators of streams."""

from __future__ import annotations

from typing import Any

from t2n_core.dialect.cases.draw import Draw, arguments
from t2n_core.dialect.cases.recipes import recipe


def _stream(draw: Draw) -> tuple[list[int], int]:
    """Return the shape of a pulse and its axis."""
    shape = draw.shape(draw.integer(1, 3), 1, 5)
    axis = draw.integer(0, len(shape) - 1)
    shape[axis] = draw.integer(3, 9)
    return shape, axis


@recipe("tract_pulse_cumsum")
def _cumsum(draw: Draw) -> dict[str, Any]:
    shape, axis = _stream(draw)
    return {"input": draw.floats(shape), "axis": axis, "exclusive": draw.flag(), "skip": draw.integer(0, 4)}


@recipe("tract_pulse_delay")
def _delay(draw: Draw) -> dict[str, Any]:
    shape, axis = _stream(draw)
    return arguments(
        input=draw.floats(shape),
        axis=axis,
        delay=draw.integer(0, 4),
        overlap=draw.integer(0, 3),
        zero_pad=draw.turn([None, True, False]),
    )


@recipe("tract_pulse_mask")
def _mask(draw: Draw) -> dict[str, Any]:
    shape, axis = _stream(draw)
    begin = draw.integer(0, 3)
    return {
        "input": draw.floats(shape),
        "axis": axis,
        "begin": begin,
        "end": begin + draw.integer(1, 6),
        "value": draw.number_of(-2.0, 2.0),
    }


@recipe("tract_pulse_pulse_pad")
def _pad(draw: Draw) -> dict[str, Any]:
    shape, axis = _stream(draw)
    before, after = draw.integer(0, 2), draw.integer(0, 3)
    return {
        "input": draw.floats(shape),
        "axis": axis,
        "before": before,
        "after": after,
        "begin_input": before,
        "end_input": shape[axis] - after,
        "border": draw.turn(["constant", "replicated"]),
        "value": draw.number_of(-2.0, 2.0),
        "overlap": 0,
    }
