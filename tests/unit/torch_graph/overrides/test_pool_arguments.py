"""Pooling over one window of dynamic size is a reduction; every other pooling is PyTorch's own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from t2n_core.torch_graph.overrides.registry import overrides

IMAGE = torch.randn(2, 3, 9, 8, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("pool", "arguments"),
    [
        (F.avg_pool2d, {"kernel_size": 3}),
        (F.avg_pool2d, {"kernel_size": (2, 3), "stride": (1, 2), "padding": 1, "count_include_pad": False}),
        (F.avg_pool2d, {"kernel_size": 2, "ceil_mode": True, "divisor_override": 3}),
        (F.avg_pool1d, {"kernel_size": 4}),
        (F.max_pool2d, {"kernel_size": 3, "stride": 2, "padding": 1}),
        (F.max_pool2d, {"kernel_size": (9, 8), "return_indices": True}),
        (torch.max_pool2d, {"kernel_size": [2, 3], "dilation": 2}),
    ],
)
def test_other_windows_are_those_of_pytorch(pool: Any, arguments: dict[str, Any]) -> None:
    x = IMAGE[0] if pool is F.avg_pool1d else IMAGE
    found, expected = overrides()[pool].replacement(x, **arguments), pool(x, **arguments)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
