"""Weights that stay in PyTorch's memory until the archive is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT32, ArrayWeight, Value
from t2n_core.op.dtypes import numpy_dtype
from t2n_core.torch_graph.graph.ir import Scaled


@dataclass(frozen=True, slots=True, eq=False)
class TensorWeight:
    """A torch tensor as the source of a variable, of which it shares the memory."""

    tensor: torch.Tensor
    scaled: Scaled | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        return numpy_dtype(self.tensor.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    def array(self) -> NDArray[Any]:
        found: NDArray[Any] = self.tensor.detach().cpu().numpy()
        return found

    def chunks(self) -> Iterator[memoryview]:
        yield from ArrayWeight(self.array()).chunks()


@dataclass(frozen=True, slots=True, eq=False)
class MadeWeight:
    """The numbers, float32, that statements make of weights; they are computed where a rule asks for them."""

    shape: tuple[int, ...]
    make: Callable[[], NDArray[Any]]
    dtype: np.dtype[Any] = FLOAT32

    def array(self) -> NDArray[Any]:
        return self.make()

    def chunks(self) -> Iterator[memoryview]:
        yield from ArrayWeight(self.array()).chunks()


def known(value: Value) -> NDArray[Any] | None:
    """Return the numbers of a weight or constant; None for a value that the graph computes."""
    weight = value.weight
    if isinstance(weight, TensorWeight | MadeWeight):
        return weight.array()
    return weight.array if isinstance(weight, ArrayWeight) else None


def derived(g: Emitter, source: Value, word: str, array: NDArray[Any]) -> Value:
    """Return a variable made from a weight, under that weight's label and a word: `conv.bias.row`."""
    label = f"{_label(source)}.{word}"
    while True:
        value = g.variable(label, ArrayWeight(array))
        stored = known(value)
        if stored is not None and stored.dtype == array.dtype and np.array_equal(stored, array):
            return value
        label += "_"  # the same weight made into something else for another operator


def _label(source: Value) -> str:
    """Return the label of a weight, or of the one that a value is made of."""
    operation = source.producer
    if operation is None:
        return source.name
    if operation.name == "variable":
        return str(operation.arguments["label"])
    return _label(next(operation.inputs()))


def row(g: Emitter, value: Value, rank: int, axis: int = 1) -> Value:
    """Return a vector along one of `rank` axes; a weight is stored that way, since old engines want constants."""
    shape = [1] * rank
    shape[axis] = value.shape[0]
    numbers = known(value)
    if numbers is None:
        return g.reshape_to(value, shape)
    return derived(g, value, f"axis{axis}of{rank}", numbers.reshape(shape))
