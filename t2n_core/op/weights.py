"""Weights that stay in PyTorch's memory until the archive is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.nnef.sizes.dims import Dim
from t2n_core.op.dtypes import numpy_dtype


@dataclass(frozen=True, slots=True, eq=False)
class TensorWeight:
    """A torch tensor as the source of a variable, which shares its memory."""

    tensor: torch.Tensor

    @property
    def dtype(self) -> np.dtype[Any]:
        return numpy_dtype(self.tensor.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    def array(self) -> NDArray[Any]:
        array: NDArray[Any] = self.tensor.detach().cpu().numpy()
        return array

    def chunks(self) -> Iterator[memoryview]:
        yield from ArrayWeight(self.array()).chunks()


@dataclass(frozen=True, slots=True, eq=False)
class ComputedWeight:
    """The elements of a value that operations compute from weights; they are computed when a rule needs them."""

    shape: tuple[int, ...]
    compute: Callable[[], NDArray[Any]]
    dtype: np.dtype[Any] = FLOAT32

    def array(self) -> NDArray[Any]:
        return self.compute()

    def chunks(self) -> Iterator[memoryview]:
        yield from ArrayWeight(self.array()).chunks()


def constant_values(value: Value) -> NDArray[Any] | None:
    """Return the elements of a weight or constant; None for a value that the graph computes."""
    weight = value.weight
    return array_of(weight) if isinstance(weight, ArrayWeight | ComputedWeight | TensorWeight) else None


def array_of(weight: ArrayWeight | ComputedWeight | TensorWeight) -> NDArray[Any]:
    """Return the elements of a weight."""
    return weight.array if isinstance(weight, ArrayWeight) else weight.array()


def with_values(value: Value, elements: Callable[[], NDArray[Any]]) -> Value:
    """Return a value that is computed from weights, with its elements, so that rules treat it as a weight.

    The archive holds the weights themselves, under the keys of the state_dict; the engine runs such operations once.
    """
    if value.weight is None:
        value.weight = ComputedWeight(tuple(map(int, value.shape)), elements, value.dtype)
    return value


def row(g: Emitter, value: Value, rank: int, axis: int = 1) -> Value:
    """Return a vector along one of `rank` axes."""
    shape = [1] * rank
    shape[axis] = value.shape[0]
    return in_shape(g, value, shape)


def in_shape(g: Emitter, value: Value, shape: Sequence[Dim]) -> Value:
    """Return a value, which may be a weight, in another shape."""
    out, weight = g.reshape_to(value, shape), value.weight
    if out is value or not isinstance(weight, ArrayWeight | ComputedWeight | TensorWeight):
        return out
    return with_values(out, lambda: array_of(weight).reshape([int(extent) for extent in shape]))
