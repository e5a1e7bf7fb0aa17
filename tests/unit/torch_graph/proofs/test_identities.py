"""Calls that return one of their arguments."""

from __future__ import annotations

import torch

from t2n_core.torch_graph.proofs.identities import identity, is_reshape
from t2n_core.torch_graph.proofs.value_numbers import Numbering


def test_an_axis_of_a_scalar_is_none() -> None:
    scalar = Numbering().constant(torch.tensor(1.5))
    bound = {"self": scalar, "dim": [0], "keepdim": False}
    assert is_reshape("aten::mean.dim", bound, ())
    assert identity("aten::flip", {"self": scalar, "dims": [0]}, (), torch.float32) is scalar
