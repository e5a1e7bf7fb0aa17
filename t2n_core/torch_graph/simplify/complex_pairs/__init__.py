"""Complex numbers inside a model, as pairs of real ones: NNEF and tract have no complex numbers.

    @on_pairs("aten::mul")
    def mul(self: Operand, other: Operand) -> Pair: ...

A function takes the arguments of the torch schema, with a `Pair` where a tensor is complex, and returns a `Pair` for
each complex result. It is traced on fake tensors, like a decomposition, and its steps are looked up again.

Inputs and outputs of a model stay real: `torch.view_as_complex` and `torch.view_as_real` convert inside the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from t2n_core.torch_graph.simplify.by_overload import ByOverload


@dataclass(frozen=True, slots=True)
class Pair:
    """Real and imaginary part: two tensors of one shape and dtype, or two numbers."""

    re: Any
    im: Any


Operand = Pair | Tensor | complex

_TABLE = ByOverload(__name__, __path__)
on_pairs = _TABLE.register
"""Registers the function of an operator on pairs, for all its overloads or for one (`aten::stft.center`)."""
find = _TABLE.find
"""Returns the function that computes an operator on pairs; None if there is none."""
known_overloads = _TABLE.overloads


def as_pair(operand: Operand) -> Pair:
    """Return a real tensor or number with an imaginary part of zeros."""
    if isinstance(operand, Pair):
        return operand
    if isinstance(operand, Tensor):
        return Pair(operand, torch.zeros_like(operand))
    number = complex(operand)
    return Pair(number.real, number.imag)
