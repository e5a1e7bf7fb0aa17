"""Products of groups of rows with a matrix of their own each, as mixtures of experts have them."""

from __future__ import annotations

import torch
from torch import Tensor

from t2n_core.torch_graph.simplify.decompositions import decomposition


@decomposition("transformers::grouped_mm_fallback")
def grouped_mm_fallback(input: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    """Rows of [n, k] up to offs[0] times weight[0] of [groups, k, m], those up to offs[1] times weight[1], and so on.

    Every row gets its matrix by gathering, which costs memory for one matrix per row.
    """
    rows = torch.arange(input.shape[0])
    group = (rows.unsqueeze(1) >= offs.unsqueeze(0)).to(torch.int64).sum(1).clamp(max=weight.shape[0] - 1)
    return torch.bmm(input.unsqueeze(1), weight.index_select(0, group)).squeeze(1)
