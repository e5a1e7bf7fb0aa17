"""A program of several archives: its modules, its statements, and the model's own loop as the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor, nn

from t2n_core.errors import InputError
from t2n_core.parity.samples import Array
from t2n_core.program.statements import Statement


@dataclass(frozen=True, slots=True)
class Part:
    """One archive of a program."""

    module: nn.Module
    arguments: Any
    """An example call, as for `ModelExport`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of its export by name, such as `dynamic_axes` and `output_names`."""


@dataclass(frozen=True, slots=True)
class Program:
    """Several modules and the statements that join them.

    Args:
        parts: the archives by name.
        statements: what runs when, and which output is which input: see `t2n_core.program.statements`.
        outputs: the variables that are the results of the program.
        reference: the model's own loop. It takes the tensors of an example by name, and returns a tensor, a sequence of
            them in the order of `outputs`, or a mapping by name.
        examples: the inputs of the program, by name; each is checked, so different ones prove more.
    """

    parts: Mapping[str, Part]
    statements: Sequence[Statement]
    outputs: Sequence[str]
    reference: Callable[..., Any]
    examples: Sequence[Mapping[str, Tensor]]

    def __post_init__(self) -> None:
        if not self.parts or not self.outputs or not self.examples:
            raise InputError("a program needs archives, outputs and examples")
        names = list(self.examples[0])
        if other := next((example for example in self.examples if set(example) != set(names)), None):
            raise InputError(f"examples have different inputs: {', '.join(names)}, and {', '.join(other)}")

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return the names of the program's inputs."""
        return tuple(self.examples[0])

    def expected(self, example: Mapping[str, Tensor]) -> dict[str, Array]:
        """Return the results of the reference for an example. Raises InputError for others than `outputs`."""
        results = self.reference(**example)
        if isinstance(results, Tensor):
            results = (results,)
        if not isinstance(results, Mapping):
            if len(results) != len(self.outputs):
                raise InputError(f"the reference returned {len(results)} results for {len(self.outputs)} outputs")
            results = dict(zip(self.outputs, results, strict=True))
        if missing := [name for name in self.outputs if name not in results]:
            raise InputError(f"the reference returned no {', '.join(missing)}")
        return {name: as_array(results[name]) for name in self.outputs}


def as_array(value: Any) -> Array:
    """Return a tensor, number or sequence as an array."""
    return np.asarray(value.detach().cpu().numpy() if isinstance(value, Tensor) else value)
