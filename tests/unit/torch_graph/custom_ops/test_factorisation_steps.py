"""Operators that stand for loops: their numbers, and their shapes where there are none."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from t2n_core.torch_graph.custom_ops.factorisation_steps import loop


def numbers(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


A, WIDE, TALL = numbers(4, 4), numbers(2, 3, 5), numbers(5, 3)
PIVOTS = torch.tensor([3, 2, 4, 4], dtype=torch.int32)
CALLS: dict[str, tuple[Any, ...]] = {
    "cholesky": (A @ A.T,),
    "lu": (WIDE,),
    "order": (PIVOTS, 5),
    "solve": (A, numbers(4, 2), True, False),
    "reflections": (TALL,),
    "reflect": (*torch.geqrf(TALL), numbers(5, 2), True),
    "orthogonal": (WIDE, 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_shapes_are_those_of_the_numbers(name: str) -> None:
    def said(found: Any) -> list[tuple[torch.Size, torch.dtype]]:
        return [(x.shape, x.dtype) for x in ([found] if isinstance(found, Tensor) else found)]

    arguments = CALLS[name]
    without = [a.to("meta") if isinstance(a, Tensor) else a for a in arguments]
    assert said(loop(name, *without)) == said(loop(name, *arguments))


def test_the_factors_give_the_matrix_back() -> None:
    factor, pivots = loop("cholesky", A @ A.T)
    torch.testing.assert_close(factor @ factor.T, A @ A.T)
    torch.testing.assert_close(pivots, factor.diagonal() ** 2)
    packed, exchanges = loop("lu", A)
    rows = A[loop("order", exchanges, 4)]
    torch.testing.assert_close((packed.tril(-1) + torch.eye(4, dtype=A.dtype)) @ packed.triu(), rows)


def test_exchanges_come_one_after_the_other() -> None:
    assert loop("order", PIVOTS, 5).tolist() == [2, 1, 3, 0, 4]


def test_rotated_columns_are_orthogonal() -> None:
    columns = loop("orthogonal", WIDE, 2)[..., :2, :]
    products = columns.mT @ columns
    assert float((products - torch.diag_embed(products.diagonal(0, -2, -1))).abs().max()) < 1e-12
