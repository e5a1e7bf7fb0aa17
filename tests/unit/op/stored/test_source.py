"""The model that computes with the weights of the archive."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from t2n_core.errors import InputError
from t2n_core.op.stored.blocks import as_blocks
from t2n_core.op.stored.float16 import as_float16
from t2n_core.op.stored.int8 import as_bytes
from t2n_core.op.stored.source import StoredSource
from t2n_core.torch_graph.frontend.sources import source_of

ROUNDED = {"q4_0": as_blocks, "float16": as_float16, "int8": lambda weight: as_bytes(weight, (0,))}


@pytest.mark.parametrize("form", list(ROUNDED))
def test_a_model_is_called_with_other_weights_and_stays_as_it_is(form: str) -> None:
    model = nn.Linear(32, 4)
    before, x = model.weight.detach().clone(), torch.randn(2, 32)
    stored = ROUNDED[form](before)
    output = StoredSource(source_of(model), frozenset({("weight", stored)})).run((x,), {})
    assert torch.equal(output, F.linear(x, stored.values, model.bias))
    assert not torch.equal(output, model(x))
    assert torch.equal(model.weight, before)


def test_a_recurrent_net_is_called_with_other_weights() -> None:
    """It keeps a list of its weights besides the parameters."""
    model = nn.LSTM(32, 4)
    x = torch.randn(3, 1, 32)
    output = StoredSource(source_of(model), frozenset({("weight_ih_l0", as_float16(model.weight_ih_l0))})).run(
        (x,), {}
    )[0]
    rounded = nn.LSTM(32, 4)
    state = dict(model.state_dict())
    rounded.load_state_dict({**state, "weight_ih_l0": state["weight_ih_l0"].half().float()})
    assert torch.equal(output, rounded(x)[0])
    assert not torch.equal(output, model(x)[0])


def test_a_label_that_is_no_weight_is_refused() -> None:
    with pytest.raises(InputError, match="not the model's own: nothing"):
        StoredSource(source_of(nn.Linear(32, 4)), frozenset({("nothing", as_float16(torch.ones(2, 2)))}))
