"""The inputs and outputs of a model before and after transforms, as the engine reports them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_NAMES = {"bool": "bool", "f": "float", "i": "int", "u": "uint"}


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
        *shape, dtype = _split(fact)
        return cls(name, tuple(one for one in shape if one), _dtype(dtype.strip().lower()))


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


def _split(fact: str) -> list[str]:
    """Return the parts between commas outside parentheses."""
    parts, depth = [""], 0
    for letter in fact:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _dtype(word: str) -> np.dtype[Any] | None:
    kind = word if word == "bool" else word[:1]
    if kind not in _NAMES or (kind != "bool" and not word[1:].isdigit()):
        return None
    try:
        return np.dtype(_NAMES[kind] + word[len(kind) :])
    except TypeError:
        return None
