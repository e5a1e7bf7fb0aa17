"""The state of an archive: inputs that take outputs of the previous call."""

from __future__ import annotations

from dataclasses import dataclass

from t2n_core.engine.protocol import Array


@dataclass(frozen=True, slots=True)
class StatePair:
    """An input that holds state, and the output that is its next value."""

    input: str
    output: str
    initial: Array
    """Zeros, empty along the axes that grow, as most models start. The archive does not contain it."""
    growing: tuple[int, ...] = ()
    """The axes that a call makes longer."""
