"""The results of a model: the places of its tensors, their names, and what is no tensor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from t2n_core.errors import CaptureError, InputError
from t2n_core.torch_graph.ways_in.structure import Path, leaves_with_path

_RETURNED = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)


class DroppedResultWarning(UserWarning):
    """A model returns what is no tensor, and an archive cannot."""


@dataclass(slots=True)
class Results:
    """Places in the nested result of a call; filled when the call is made."""

    paths: Sequence[Path] = ()
    """Places of the tensors."""
    others: Sequence[str] = ()
    """Places of what is neither a tensor nor None, each with its class: `past_key_values: DynamicCache`."""

    def flat(self, result: Any) -> tuple[Any, ...]:
        """Return the tensors and sizes of a nested result, and note the places."""
        return self.note(leaves_with_path(result))

    def note(self, leaves: Iterable[tuple[Path, Any]]) -> tuple[Any, ...]:
        """Return the tensors and sizes among leaves that come with their places, and note the places."""
        found = [(path, leaf) for path, leaf in leaves if leaf is not None]
        quantised = [path for path, leaf in found if getattr(leaf, "is_quantized", False) is True]
        if quantised:
            raise CaptureError(
                f"the model returns a quantised tensor ({_place(quantised[0])}), which archives do not have",
                hint="return real numbers: x.dequantize(), or torch.ao.quantization.DeQuantStub at the model's end",
            )
        others = [(path, leaf) for path, leaf in found if not isinstance(leaf, _RETURNED)]
        self.paths = [path for path, leaf in found if isinstance(leaf, torch.Tensor)]
        self.others = [f"{_place(path)}: {type(leaf).__name__}" for path, leaf in others]
        return tuple(leaf for _, leaf in found if isinstance(leaf, _RETURNED))

    def notes(self) -> list[str]:
        """Return a line on the results that are no tensors, if there are some."""
        told = f"results that are no tensors are not in the archive: {', '.join(self.others)}"
        return [told] if self.others else []

    def names(self, given: Sequence[str] | None = None) -> list[str]:
        """Return the names of the tensors: `output`, `output_0`, or their keys where the model names them.

        `given` are names of all tensors, or of the top-level results: of `(x, (y, z))`, `a` and `b` are `a`, `b_0` and
        `b_1`; one name of a result with keys comes before each of them. Raises InputError for another number of them.
        """
        if given is None:
            return _own_names(self.paths)
        if len(given) == len(self.paths):
            return list(given)
        if len(given) == 1 and all(path and isinstance(path[0], str) for path in self.paths):
            return [_joined((given[0], *path)) for path in self.paths]
        outer = list(dict.fromkeys(path[:1] for path in self.paths))
        if len(given) != len(outer):
            nested = f" in {len(outer)} results" if len(outer) < len(self.paths) else ""
            raise InputError(f"{len(given)} output names for {len(self.paths)} outputs{nested}")
        return [_joined((given[outer.index(path[:1])], *path[1:])) for path in self.paths]


def _own_names(paths: Sequence[Path]) -> list[str]:
    if len(paths) == 1 and not any(isinstance(key, str) for key in paths[0]):
        return ["output"]
    if all(path and isinstance(path[0], str) for path in paths):
        names = [_joined(path) for path in paths]
        names = [name if name[:1].isalpha() else f"output_{name}" for name in names]
        if len(set(names)) == len(names):
            return names
    return [f"output_{place}" for place in range(len(paths))]


def _joined(path: Path) -> str:
    return re.sub(r"\W", "_", "_".join(map(str, path)))


def _place(path: Path) -> str:
    """Return a path as Python writes it: `hidden.cache[0]`."""
    text = "".join(f".{key}" if isinstance(key, str) else f"[{key}]" for key in path)
    return text.removeprefix(".") or "the result"


__all__ = ["DroppedResultWarning", "Results"]
