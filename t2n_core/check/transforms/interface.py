"""The inputs and outputs of a model before and after transforms, as the engine reports them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2n_core.parity.judging import interface


@dataclass(frozen=True, slots=True)
class Port:
    """An input or an output."""

    name: str
    shape: tuple[str, ...]
    dtype: np.dtype[Any] | None
    """None for a type that NumPy does not support."""

    @classmethod
    def of(cls, name: str, fact: str) -> Port:
        """Return the port that the engine describes as `3,T,f32`."""
        stated = interface.Port.of_fact(name, fact)
        return cls(name, stated.shape or (), np.dtype(stated.dtype) if stated.dtype else None)


@dataclass(frozen=True, slots=True)
class Interface:
    """All inputs and outputs of a model, in order."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @classmethod
    def of(cls, facts: Mapping[str, Sequence[Sequence[str]]]) -> Interface:
        """Return the interface in the facts of a reply."""
        inputs, outputs = (tuple(Port.of(*pair) for pair in facts[kind]) for kind in ("input", "output"))
        return cls(inputs, outputs)


def positions(before: Sequence[Port], after: Sequence[Port]) -> list[int] | None:
    """Return the index before the transforms of each port after them, by name or, if a name differs, by order.

    None if ports were added or removed and the names do not show which.
    """
    names, new = [port.name for port in before], [port.name for port in after]
    if len(set(names)) == len(names) and set(new) <= set(names):
        return [names.index(name) for name in new]
    return list(range(len(new))) if len(new) == len(names) else None
