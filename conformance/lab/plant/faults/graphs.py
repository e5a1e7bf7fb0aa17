"""Random graphs of NNEF with one planted operation; shapes are known throughout, values are not needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from t2n_core.nnef.reading.binding import Signatures
from t2n_core.nnef.reading.document import Argument, Assignment, Name
from t2n_core.reduce.program import Array, Program

Shape = tuple[int, ...]
_UNARY = ("tanh", "sigmoid", "relu", "abs", "sin", "neg")
_BINARY = ("add", "sub", "mul", "max", "min")
_LARGEST = 4096
_STEPS = (
    ("unary",) * 4
    + ("binary",) * 4
    + ("transpose", "merge", "cut", "join", "reduce", "product", "softmax", "pad", "wrap")
)


@dataclass
class Draft:
    """A graph in the making."""

    rng: np.random.Generator
    shapes: dict[str, Shape] = field(default_factory=dict)
    prefix: str = "v"
    """What the names of its values begin with."""
    start: str = "first"
    """The value that a plant takes where no other one fits."""
    calls: list[Assignment] = field(default_factory=list)
    inputs: dict[str, Array] = field(default_factory=dict)
    weights: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def of_two_inputs(cls, seed: int) -> Draft:
        """Return an empty graph with inputs of [2, 8, 40] and [2, 6, 40]."""
        draft = cls(np.random.default_rng(seed))
        for name, shape in (("first", (2, 8, 40)), ("second", (2, 6, 40))):
            draft.inputs[name] = draft.rng.standard_normal(shape).astype(np.float32)
            draft.shapes[name] = shape
        return draft

    def call(self, operator: str, shape: Sequence[int], /, **arguments: Any) -> str:
        """Add a statement, and return the name of its result. Texts that name a value are names."""
        name = f"{self.prefix}{len(self.calls)}"
        call_arguments = tuple(Argument(key, self._value(value)) for key, value in arguments.items())
        self.calls.append(Assignment((name,), operator, call_arguments))
        self.shapes[name] = tuple(shape)
        return name

    def _value(self, value: Any) -> Any:
        if isinstance(value, str) and value in self.shapes:
            return Name(value)
        return [self._value(item) for item in value] if isinstance(value, list) else value

    def weight(self, shape: Shape) -> str:
        """Add a weight, and return its name."""
        name = f"{self.prefix}_weight{len(self.weights)}"
        self.weights[name] = (0.3 * self.rng.standard_normal(shape)).astype(np.float32)
        self.shapes[name] = shape
        return name

    def pick(self, fits: Callable[[Shape], bool] = lambda shape: True) -> str | None:
        """Return a value of a fitting shape, None if there is none."""
        usable = [
            n for n, s in self.shapes.items() if n not in self.weights and s and math.prod(s) <= _LARGEST and fits(s)
        ]
        return str(self.rng.choice(usable[-12:])) if usable else None

    def step(self) -> None:
        """Add a statement of a random kind, if one fits."""
        x = self.pick()
        assert x is not None
        getattr(self, f"_{self.rng.choice(_STEPS)}")(x, self.shapes[x])

    def _unary(self, x: str, shape: Shape) -> None:
        self.call(str(self.rng.choice(_UNARY)), shape, x=x)

    def _binary(self, x: str, shape: Shape) -> None:
        y = self.pick(lambda other: other == shape)
        self.call(str(self.rng.choice(_BINARY)), shape, x=x, y=y)

    def _transpose(self, x: str, shape: Shape) -> None:
        axes = [int(axis) for axis in self.rng.permutation(len(shape))]
        self.call("transpose", [shape[axis] for axis in axes], input=x, axes=axes)

    def _merge(self, x: str, shape: Shape) -> None:
        if len(shape) > 1:
            at = int(self.rng.integers(len(shape) - 1))
            merged = [*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]]
            self.call("reshape", merged, input=x, shape=merged)

    def _cut(self, x: str, shape: Shape) -> None:
        axes = [axis for axis, extent in enumerate(shape) if extent > 2]
        if axes:
            axis = int(self.rng.choice(axes))
            end = shape[axis]
            cut = [*shape[:axis], end - 1, *shape[axis + 1 :]]
            self.call("slice", cut, input=x, axes=[axis], begin=[1], end=[end], stride=[1])

    def _join(self, x: str, shape: Shape) -> None:
        y = self.pick(lambda other: other == shape)
        axis = int(self.rng.integers(len(shape)))
        if 2 * math.prod(shape) <= _LARGEST:
            joined = [*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]]
            self.call("concat", joined, values=[x, y], axis=axis)

    def _reduce(self, x: str, shape: Shape) -> None:
        if math.prod(shape) > 24:
            axis = int(self.rng.integers(len(shape)))
            result_shape = [1 if at == axis else extent for at, extent in enumerate(shape)]
            self.call(str(self.rng.choice(("mean_reduce", "max_reduce"))), result_shape, input=x, axes=[axis])

    def _product(self, x: str, shape: Shape) -> None:
        if len(shape) > 1:
            width = int(self.rng.choice((4, 6, 8)))
            w = self.weight((*(1,) * (len(shape) - 2), shape[-1], width))
            self.call("matmul", [*shape[:-1], width], A=x, B=w, transposeA=False, transposeB=False)

    def _softmax(self, x: str, shape: Shape) -> None:
        self.call("softmax", shape, x=x, axes=[len(shape) - 1])

    def _pad(self, x: str, shape: Shape) -> None:
        if math.prod(shape) <= _LARGEST // 2:
            padding = [(0, 0)] * (len(shape) - 1) + [(1, 1)]
            self.call("pad", [*shape[:-1], shape[-1] + 2], input=x, padding=padding, border="constant", value=0.0)

    def _wrap(self, x: str, shape: Shape) -> None:
        if len(shape) < 4:
            axis = int(self.rng.integers(len(shape) + 1))
            self.call("unsqueeze", [*shape[:axis], 1, *shape[axis:]], input=x, axes=[axis])


def planted_graph(seed: int, size: int, plant: Callable[[Draft], str], release: str) -> Program:
    """Return a graph of about `size` statements with a planted one in its middle; the same for the same seed."""
    draft = Draft.of_two_inputs(seed)
    for _ in range(size // 2):
        draft.step()
    bad = plant(draft)
    for _ in range(size // 2):
        draft.step()
    read = {str(name) for call in draft.calls for name in call.names()}
    ends = [call.results[0] for call in draft.calls if call.results[0] not in read and draft.shapes[call.results[0]]]
    outputs = tuple(dict.fromkeys([*ends, *([] if _reaches(draft, bad, ends) else [bad])]))
    return Program(
        draft.inputs,
        draft.weights,
        tuple(draft.calls),
        outputs,
        Signatures.of("tract", release),
        ("tract_registry tract_core",),
    ).prune()


def _reaches(draft: Draft, value: str, ends: Sequence[str]) -> bool:
    needed = set(ends)
    for call in reversed(draft.calls):
        if not needed.isdisjoint(call.results):
            needed.update(map(str, call.names()))
    return value in needed
