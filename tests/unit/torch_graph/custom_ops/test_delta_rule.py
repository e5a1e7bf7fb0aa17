"""The gated delta rule: its numbers are those of the definition of the engine's operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from t2n_core.dialect.meaning.tract.recurrent import gdn_recurrent
from t2n_core.torch_graph.custom_ops import delta_rule as _declared  # noqa: F401  the operator lives there

rule: Any = torch.ops.t2n_recurrent.gated_delta_rule
BATCH, HEADS, KEYS, WIDTH = 2, 4, 2, 3


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def sequence(length: int, key_width: int = WIDTH) -> list[Tensor]:
    """Query, key, value, decay and beta."""
    query, key = (numbers(BATCH, length, KEYS, key_width, seed=seed) for seed in (1, 2))
    decay, beta = (numbers(BATCH, length, HEADS, seed=seed) for seed in (3, 4))
    return [query, key, numbers(BATCH, length, HEADS, WIDTH), -decay.abs(), beta.sigmoid()]


@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.parametrize("has_state", [True, False])
def test_the_rule_is_that_of_the_definition(length: int, has_state: bool) -> None:
    state = numbers(BATCH, HEADS, WIDTH, WIDTH) if has_state else None
    given = sequence(length)
    found = rule(*given, state)
    before = torch.zeros(BATCH, HEADS, WIDTH, WIDTH) if state is None else state
    wanted = gdn_recurrent(*(x.double().numpy() for x in (*given, before)))
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got.numpy(), expected, atol=1e-6)


def test_a_sequence_in_two_parts_is_the_sequence() -> None:
    given = sequence(5)
    whole, last = rule(*given, None)
    first, state = rule(*(x[:, :2] for x in given), None)
    rest, after = rule(*(x[:, 2:] for x in given), state)
    torch.testing.assert_close(torch.cat([first, rest], 1), whole)
    torch.testing.assert_close(after, last)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_shapes_are_those_of_the_numbers(dtype: torch.dtype) -> None:
    given = [x.to(dtype) for x in sequence(5, key_width=7)]
    for state in (None, numbers(BATCH, HEADS, 7, WIDTH)):
        found = rule(*given, state)
        without = [x if x is None else x.to("meta") for x in (*given, state)]
        said = rule(*without)
        assert [(x.shape, x.dtype) for x in said] == [(x.shape, x.dtype) for x in found]
