"""Operators that only move numbers of a weight are run by the engine, so that the archive holds the weight itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.op.weights import constant_values
from tests.releases import NEWEST


class Moved(nn.Module):
    """A weight in several shapes, one of them as a kernel, and what is computed of it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 8, 8))

    def forward(self, x: Tensor) -> Tensor:
        first, second, _ = self.weight.unbind()
        y = x @ first.t() + F.conv1d(x.mT, second[..., None]).mT
        return y @ self.weight[2, :, :8].reshape(8, 8) + (self.weight * 2).sum(0)[:1]


@pytest.mark.parametrize("version", ["0.19.15", NEWEST])
def test_the_archive_has_the_weight_and_what_is_computed_of_it(version: str) -> None:
    model = Moved().eval()
    graph = ModelExport(model, torch.randn(2, 5, 8)).lower(TractNNEF(version, check_io=False))
    labels = [op.arguments["label"] for op, _ in graph.variables()]
    assert labels.count("weight") == 1
    assert all(label == "weight" or label.startswith("constant_") for label in labels)
    (conv,) = (op for op in graph.operations if op.name == "conv")
    kernel = conv.arguments["filter"]
    np.testing.assert_array_equal(constant_values(kernel), model.weight[1, ..., None].detach().numpy())


def test_one_capture_serves_several_targets() -> None:
    export = ModelExport(Moved().eval(), torch.randn(2, 5, 8))
    targets = [TractNNEF(NEWEST, check_io=False, weights=form) for form in ("int8", None, "float16", "int8")]
    for target in targets:
        graph = export.lower(target)
        dtypes = {value.dtype for op, value in graph.variables() if op.arguments["label"] == "weight"}
        assert len(dtypes) == 1
        assert set(graph.stored) == ({"weight"} if target.writing.weights else set())
