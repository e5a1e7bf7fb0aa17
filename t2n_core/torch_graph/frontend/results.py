"""The results of a model: the paths and names of its tensors and numbers, and results that are neither."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from t2n_core.errors import CaptureError, InputError
from t2n_core.torch_graph.frontend.pytree.structure import Path, leaves, leaves_with_path

_NUMBERS: dict[type, torch.dtype] = {
    int: torch.int64,
    float: torch.float32,
    bool: torch.bool,
    torch.SymInt: torch.int64,
    torch.SymFloat: torch.float32,
    torch.SymBool: torch.bool,
}
"""Types of numbers, also symbolic ones, and their dtypes as tensors."""


def is_output(leaf: Any) -> bool:
    """Return whether a result is an output of an archive: a tensor or a number."""
    return isinstance(leaf, torch.Tensor) or type(leaf) in _NUMBERS


def dtype_of(number: Any) -> torch.dtype:
    """Return the dtype of the tensor that represents a number in an archive."""
    return _NUMBERS[type(number)]


def tensors_of(result: Any) -> list[torch.Tensor]:
    """Return the outputs among the results of a model, in the order of the archive's; numbers as tensors."""
    return [as_tensor(leaf) for leaf in leaves(result) if is_output(leaf)]


def as_tensor(leaf: Any) -> torch.Tensor:
    """Return a tensor as it is, and a number as a tensor without axes."""
    return leaf if isinstance(leaf, torch.Tensor) else torch.scalar_tensor(leaf, dtype=dtype_of(leaf))


@dataclass(slots=True)
class Results:
    """Paths in the nested result of a call; filled by the call."""

    paths: Sequence[Path] = ()
    """Paths of the outputs: tensors and numbers."""
    others: Sequence[str] = ()
    """Paths of results that are neither outputs nor None, each with its class: `past_key_values: DynamicCache`."""

    def flat(self, result: Any) -> tuple[Any, ...]:
        """Return the outputs of a nested result, and record their paths."""
        return self.note(leaves_with_path(result))

    def note(self, leaves: Iterable[tuple[Path, Any]]) -> tuple[Any, ...]:
        """Return the outputs among leaves with paths, and record the paths."""
        values = [(path, leaf) for path, leaf in leaves if leaf is not None]
        quantised = [path for path, leaf in values if getattr(leaf, "is_quantized", False) is True]
        if quantised:
            raise CaptureError(
                f"the model returns a quantised tensor ({_place(quantised[0])}), which archives do not support",
                hint="return a float tensor: x.dequantize(), or torch.ao.quantization.DeQuantStub at the model's end",
            )
        others = [(path, leaf) for path, leaf in values if not is_output(leaf)]
        self.paths = [path for path, leaf in values if is_output(leaf)]
        self.others = [f"{_place(path)}: {type(leaf).__name__}" for path, leaf in others]
        return tuple(leaf for _, leaf in values if is_output(leaf))

    def notes(self) -> list[str]:
        """Return a line on the results that are neither tensors nor numbers, if there are any."""
        line = f"results that are neither tensors nor numbers are not in the archive: {', '.join(self.others)}"
        return [line] if self.others else []

    def names(self, user_names: Sequence[str] | None = None) -> list[str]:
        """Return the names of the outputs: `output`, `output_0`, or their keys where the model names them.

        `user_names` are names of all outputs, or of the top-level results: for `(x, (y, z))`, `a` and `b` become `a`,
        `b_0` and `b_1`; the name of a result with keys is a prefix of each. Raises InputError for another number.
        """
        if user_names is None:
            return _own_names(self.paths)
        if len(user_names) == len(self.paths):
            return list(user_names)
        if len(user_names) == 1 and all(path and isinstance(path[0], str) for path in self.paths):
            return [_output_name((user_names[0], *path)) for path in self.paths]
        outer = list(dict.fromkeys(path[:1] for path in self.paths))
        if len(user_names) != len(outer):
            nested = f" in {len(outer)} results" if len(outer) < len(self.paths) else ""
            raise InputError(f"{len(user_names)} output names for {len(self.paths)} outputs{nested}")
        return [_output_name((user_names[outer.index(path[:1])], *path[1:])) for path in self.paths]


def _own_names(paths: Sequence[Path]) -> list[str]:
    if len(paths) == 1 and not any(isinstance(key, str) for key in paths[0]):
        return ["output"]
    if all(path and isinstance(path[0], str) for path in paths):
        names = [_output_name(path) for path in paths]
        names = [name if name[:1].isalpha() else f"output_{name}" for name in names]
        if len(set(names)) == len(names):
            return names
    return [f"output_{index}" for index in range(len(paths))]


def _output_name(path: Path) -> str:
    return re.sub(r"\W", "_", "_".join(map(str, path)))


def _place(path: Path) -> str:
    """Return a path in Python syntax: `hidden.cache[0]`."""
    text = "".join(f".{key}" if isinstance(key, str) else f"[{key}]" for key in path)
    return text.removeprefix(".") or "the result"
