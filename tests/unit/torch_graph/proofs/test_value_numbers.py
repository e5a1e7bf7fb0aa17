"""Equal values of programs have equal numbers."""

from __future__ import annotations

import torch

from t2n_core.torch_graph.proofs.value_numbers import Numbering


def test_constants_are_numbered_by_their_elements() -> None:
    numbering = Numbering()
    table = torch.randn(4, 128, generator=torch.Generator().manual_seed(0))
    element = numbering.constant(table[1:2, :1])  # its last stride is 128
    assert element.filled
    assert numbering.constant(table[1:2, :1].clone()).number == element.number
    assert numbering.constant(table[2:3, :1]).number != element.number
    column = numbering.constant(table[:, :1])
    assert numbering.constant(table[:, :1].contiguous()).number == column.number
    assert numbering.constant(table[:, 1:2]).number != column.number
    assert numbering.constant(table[:, 0]).number != column.number


def test_constants_of_one_element_repeated() -> None:
    numbering = Numbering()
    filled = numbering.constant(torch.full((3, 4), 2.5))
    assert numbering.constant(torch.full((1,), 2.5), (3, 4)).number == filled.number
    assert numbering.constant(torch.full((1,), 2.5), (4, 3)).number != filled.number
    assert numbering.constant(torch.full((3, 4), 2.5, dtype=torch.float64)).number != filled.number
    assert filled.element == 2.5
