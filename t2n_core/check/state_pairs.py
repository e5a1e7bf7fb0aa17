"""The state of an archive: inputs that take what outputs of the call before gave."""

from __future__ import annotations

from dataclasses import dataclass

from t2n_core.engine.protocol import Array


@dataclass(frozen=True, slots=True)
class StatePair:
    """An input that holds state, and the output that is its next value."""

    input: str
    output: str
    initial: Array
    """Zeros, empty along the axes that grow: what most models begin with. The archive does not say it."""
    growing: tuple[int, ...] = ()
    """The axes that a call makes longer."""


__all__ = ["StatePair"]
