"""Products of groups of rows with one matrix for each group, as in mixtures of experts."""

from __future__ import annotations

import functools
from typing import Any, Final

import torch
from torch import Tensor

from t2n_core.torch_graph.compat.patches import replaced
from t2n_core.torch_graph.custom_ops.experts import LIBRARY, experts
from t2n_core.torch_graph.simplify.decompositions import decomposition

MOST_PRODUCTS: Final = 8
"""Most groups for which each is a separate product.

Compared with gathering, in tract 0.23: with 8 groups, 2 for each token, a token takes 0.6 (width 1024) to 1.1 (width
256) of the time, and a prompt of 48 tokens 0.01 to 0.03; with 32 groups, 4 for each token, 2.3 and 0.1.
"""


@decomposition("transformers::grouped_mm_fallback")
def grouped_mm_fallback(input: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    """Rows of [n, k] up to offs[0] times weight[0] of [groups, k, m], those up to offs[1] times weight[1], and so on.

    With few groups, all rows are multiplied with each matrix, with zeros for the rows of other groups. With many, each
    row gathers its matrix, which takes memory for one matrix per row.
    """
    rows = torch.arange(input.shape[0])
    group = (rows.unsqueeze(1) >= offs.unsqueeze(0)).to(torch.int64).sum(1).clamp(max=weight.shape[0] - 1)
    if weight.shape[0] > MOST_PRODUCTS:
        return torch.bmm(input.unsqueeze(1), weight.index_select(0, group)).squeeze(1)
    masked_inputs = [torch.where((group == index).unsqueeze(1), input, 0.0) for index in range(weight.shape[0])]
    return functools.reduce(torch.add, map(torch.matmul, masked_inputs, weight.unbind(0)))


@decomposition("t2n_experts::experts")
def experts_of_all_rows(*arguments: Any) -> Tensor:
    """Call the library's function as while it is captured, so that it takes the operator above on every machine."""
    with replaced(f"{LIBRARY}.is_torchdynamo_compiling", lambda _: lambda: True, optional=True):
        return experts(*arguments)
