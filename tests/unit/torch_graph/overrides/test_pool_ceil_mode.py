"""The number of windows is PyTorch's own, for every small pooling."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F

from t2n_core.torch_graph.capture.tracer import TorchModuleTracer
from t2n_core.torch_graph.frontend.inputs import bind_inputs
from t2n_core.torch_graph.frontend.sources import source_of
from t2n_core.torch_graph.overrides.pool_ceil_mode import pools_of_any_size, windows


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_as_eager_pytorch(ceil_mode: bool) -> None:
    for kernel, stride, dilation in itertools.product(range(1, 6), range(1, 6), (1, 2)):
        field = dilation * (kernel - 1) + 1
        for padding in range(kernel // 2 + 1):
            for size in range(max(1, field - 2 * padding), 20):
                x = torch.zeros(1, 1, 1, size)
                pooled = F.max_pool2d(x, (1, kernel), (1, stride), (0, padding), (1, dilation), ceil_mode)
                found = windows(size, kernel, padding, padding, stride, dilation, ceil_mode)
                assert pooled.shape[3] == found, (size, kernel, stride, padding, dilation)


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
