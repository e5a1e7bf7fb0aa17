"""The names of an archive's inputs and outputs, as its graph declares them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from t2n_core.errors import InputError
from t2n_core.nnef.reading.identifiers import QUOTED, name_of

_NAMES: Final = rf'\(((?:{QUOTED}|[^)"])*)\)'
_GRAPH: Final = re.compile(rf'^\s*graph\s+(?:{QUOTED}|[^("])*{_NAMES}\s*->\s*{_NAMES}', re.MULTILINE)
_NAME: Final = re.compile(rf"{QUOTED}|[^\s,]+")


@dataclass(frozen=True, slots=True)
class Signature:
    """Names in the order of the graph."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Signature:
        """Return the names that the text of `graph.nnef` declares. Raises ValueError if it declares no graph."""
        match = _GRAPH.search(text)
        if not match:
            raise ValueError("graph.nnef declares no graph")
        return cls(_names(match[1]), _names(match[2]))

    def without(
        self, state: Sequence[tuple[str, str]]
    ) -> tuple[tuple[str, ...], tuple[str, ...], list[tuple[int, int]]]:
        """Return the regular inputs and outputs, and the indices of each pair of an input and an output.

        Raises InputError for a name that the graph lacks or that is used twice.
        """
        places = []
        for index, names_of_kind, kind in ((0, self.inputs, "input"), (1, self.outputs, "output")):
            names = [pair[index] for pair in state]
            for name in names:
                if name not in names_of_kind:
                    raise InputError(f"the archive has no {kind} {name!r}", hint=f"it has {', '.join(names_of_kind)}")
                if names.count(name) > 1:
                    raise InputError(f"the {kind} {name!r} is in two pairs of state")
            places.append([names_of_kind.index(name) for name in names])
        inputs = tuple(name for position, name in enumerate(self.inputs) if position not in places[0])
        outputs = tuple(name for position, name in enumerate(self.outputs) if position not in places[1])
        return inputs, outputs, list(zip(*places, strict=True))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name_of(match[0]) for match in _NAME.finditer(text))
