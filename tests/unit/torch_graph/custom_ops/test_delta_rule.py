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
    operands = sequence(length)
    results = rule(*operands, state)
    before = torch.zeros(BATCH, HEADS, WIDTH, WIDTH) if state is None else state
    references = gdn_recurrent(*(x.double().numpy() for x in (*operands, before)))
    for got, expected in zip(results, references, strict=True):
        np.testing.assert_allclose(got.numpy(), expected, atol=1e-6)


def test_a_sequence_in_two_parts_is_the_sequence() -> None:
    operands = sequence(5)
    full_output, last = rule(*operands, None)
    first, state = rule(*(x[:, :2] for x in operands), None)
    rest, after = rule(*(x[:, 2:] for x in operands), state)
    torch.testing.assert_close(torch.cat([first, rest], 1), full_output)
    torch.testing.assert_close(after, last)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_shapes_are_those_of_the_numbers(dtype: torch.dtype) -> None:
    operands = [x.to(dtype) for x in sequence(5, key_width=7)]
    for state in (None, numbers(BATCH, HEADS, 7, WIDTH)):
        results = rule(*operands, state)
        without = [x if x is None else x.to("meta") for x in (*operands, state)]
        meta_results = rule(*without)
        assert [(x.shape, x.dtype) for x in meta_results] == [(x.shape, x.dtype) for x in results]
