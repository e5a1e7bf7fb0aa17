"""Reader of a `graph.quant`: the formats in which an engine keeps quantised values, by their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from t2n_core.errors import InputError
from t2n_core.nnef.lexical import plain_identifier
from t2n_core.nnef.reading.grammar import GrammarReader
from t2n_core.nnef.reading.identifiers import unquote, with_plain_identifiers
from t2n_core.nnef.reading.members import QUANT_FILE
from t2n_core.nnef.reading.tree import Call, Literal

_LEVELS: Final = 255
"""Levels above the lowest one of 8 bits, whatever `bits` says, as tract divides a range."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The values that integers stand for: (integer - zero_point) * scale."""

    zero_point: int
    scale: float
    dtype: np.dtype[Any]
    """The type of the integers."""


def read_grids(text: str) -> dict[str, Grid]:
    """Return the grids of a `graph.quant` by the plain identifiers of their values. Raises InputError."""
    reader = GrammarReader(with_plain_identifiers(text), QUANT_FILE)
    grids = {}
    while reader.peek().kind != "end":
        token = reader.peek()
        name = plain_identifier(unquote(token.text)) if token.kind == "string" else token.text
        reader.skip_to(":")
        call = reader.expression()
        reader.take(";")
        if not isinstance(call, Call):
            raise reader.error_at(token.start, f"`{name}` has no format")
        values = {key: value.value for key, value in call.arguments if isinstance(value, Literal)}
        try:
            grids[name] = _grid(call.operator, values)
        except (KeyError, TypeError) as wrong:
            raise InputError(f"the format of `{name}` in {QUANT_FILE} cannot be read: {wrong}") from None
    return grids


def _grid(format: str, values: dict[str, Any]) -> Grid:
    """Return the grid of a format, as tract makes it. Raises KeyError and TypeError for a format that tract lacks."""
    bits, signed = values["bits"], values.get("signed", True)
    dtype = {(8, True): np.int8, (8, False): np.uint8, (32, True): np.int32}[bits, signed]
    if format == "zero_point_linear_quantize":
        return Grid(int(values["zero_point"]), float(np.float32(values["scale"])), np.dtype(dtype))
    if format != "linear_quantize":
        raise KeyError(format)
    least, most = np.float32(values["min"]), np.float32(values["max"])
    scale = (most - least) / np.float32(_LEVELS)
    return Grid(int(-(least + most) / 2 / scale), float(scale), np.dtype(dtype))
