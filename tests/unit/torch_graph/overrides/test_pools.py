"""Pooling over one window of dynamic size is a reduction; every other one, and the number of windows, is PyTorch's."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from t2n_core.torch_graph.capture.tracer import TorchModuleTracer
from t2n_core.torch_graph.frontend.inputs import bind_inputs
from t2n_core.torch_graph.frontend.sources import source_of
from t2n_core.torch_graph.overrides.pools import pools_of_any_size, windows
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
    actual, expected = overrides()[pool].replacement(x, **arguments), pool(x, **arguments)
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_as_eager_pytorch(ceil_mode: bool) -> None:
    for kernel, stride, dilation in itertools.product(range(1, 6), range(1, 6), (1, 2)):
        field = dilation * (kernel - 1) + 1
        for padding in range(kernel // 2 + 1):
            for size in range(max(1, field - 2 * padding), 20):
                x = torch.zeros(1, 1, 1, size)
                pooled = F.max_pool2d(x, (1, kernel), (1, stride), (0, padding), (1, dilation), ceil_mode)
                window_count = windows(size, kernel, padding, padding, stride, dilation, ceil_mode)
                assert pooled.shape[3] == window_count, (size, kernel, stride, padding, dilation)


class Pool(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(x, 3, 2, 1, ceil_mode=True)


@pytest.mark.parametrize("size", [8, 9])
def test_capture_decides_nothing(size: int) -> None:
    inputs = bind_inputs(source_of(Pool()), {"x": torch.randn(1, 2, size, 7)})
    captured = TorchModuleTracer(Pool(), args=inputs, dynamic_axes={"x": {2: "T"}}).trace()
    assert str(captured.range) == "T >= 1"
    assert str(captured.graph.outputs[0].shape) == "(1, 2, FloorDiv(T, 2) + 1, 4)"


def test_pytorch_is_as_before_afterwards() -> None:
    from torch import _meta_registrations as registrations

    before = registrations.pooling_output_shape_pad_lr
    with pools_of_any_size():
        assert registrations.pooling_output_shape_pad_lr is not before
    assert registrations.pooling_output_shape_pad_lr is before
